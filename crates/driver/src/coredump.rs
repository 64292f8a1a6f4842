//! What a failing kernel leaves behind if it is asked to: a report in a file.
//!
//! NVIDIA's driver writes the state of the device for a debugger. Here there is none that a debugger would know: the report is
//! a text with the kernel, the block and thread, the address and the line that failed, for people. It says so itself.

use crate::error::CuResult;
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::memory::ContextId;
use device::{ContextFlags, FaultReport};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most bytes of a file's name, with its NUL.
pub const MAX_TEXT: usize = 1024;

/// What can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    enabled: bool,
    user_trigger: bool,
    file: String,
    pipe: String,
    flags: u32,
}

struct All {
    global: Settings,
    contexts: BTreeMap<ContextId, Settings>,
}

impl All {
    fn of(&mut self, context: ContextId) -> &mut Settings {
        self.contexts.entry(context).or_insert_with(|| self.global.clone())
    }
}

static ALL: LazyLock<Mutex<All>> = LazyLock::new(|| {
    let global = Settings::from_variables(|name| std::env::var(name).ok());
    Mutex::new(All { global, contexts: BTreeMap::new() })
});

fn all() -> MutexGuard<'static, All> {
    locked(&ALL)
}

/// The settings that a new context takes.
pub fn global() -> Settings {
    all().global.clone()
}

/// The settings of a context: at first, those there are when it is made, or first asked about.
pub fn of_context(context: ContextId) -> Settings {
    all().of(context).clone()
}

/// The context is gone.
pub fn forget(context: ContextId) {
    all().contexts.remove(&context);
}

/// Changes those of new contexts.
pub fn change_global(change: impl FnOnce(&mut Settings) -> CuResult) -> CuResult {
    change(&mut all().global)
}

/// Changes those of a context.
pub fn change_context(context: ContextId, change: impl FnOnce(&mut Settings) -> CuResult) -> CuResult {
    change(all().of(context))
}

/// A context that was made with such flags, or has got them, is to leave reports if they say so, whatever else is set for it.
pub fn heed_flags(context: ContextId, flags: ContextFlags) {
    if flags.reports_failures {
        all().of(context).enabled = true;
    }
}

/// Called where a context fails: writes the report, and ends the process if that is asked for too.
pub fn kernel_failed(context: ContextId, report: &FaultReport) {
    let settings = of_context(context);
    if !settings.enabled {
        return;
    }
    let name = settings.file_name();
    match File::create(&name).and_then(|mut file| file.write_all(text(report).as_bytes())) {
        Ok(()) => eprintln!("anywarp: what the kernel left is described in {name}"),
        Err(error) => eprintln!("anywarp: no report in {name}: {error}"),
    }
    if settings.triggers_host() {
        std::process::abort();
    }
}

fn text(report: &FaultReport) -> String {
    let fault = &report.fault;
    let mut text = String::from("Anywarp: report of a failed kernel (a text, not for debuggers)\n\n");
    let mut line = |name: &str, value: String| text += &format!("{name:12}{value}\n");
    line("process", std::process::id().to_string());
    line("program", std::env::args().next().unwrap_or_default());
    line("failure", report.to_string());
    line("kind", format!("{:?}", fault.kind));
    line("kernel", report.kernel.clone());
    line("block", dimensions(fault.ctaid));
    line("of threads", dimensions(report.block_dim));
    match fault.thread(report.block_dim) {
        Some(thread) => line("thread", dimensions(thread)),
        None => line("warp", fault.warp.to_string()),
    }
    if let Some(address) = fault.address {
        line("address", format!("{address:#x}"));
    }
    if let Some(number) = fault.ptx_line {
        line("PTX line", number.to_string());
    }
    if let Some(origin) = &report.source {
        line("source", origin.to_string());
    }
    text
}

fn dimensions([x, y, z]: [u32; 3]) -> String {
    format!("({x},{y},{z})")
}

impl Settings {
    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Settings {
        let set = |name: &str, otherwise| variable(name).map_or(otherwise, |value| value.trim() != "0");
        let mut flags = 0;
        for word in variable("CUDA_COREDUMP_GENERATION_FLAGS").unwrap_or_default().split(',') {
            flags |= match word.trim() {
                "skip_nonrelocated_elf_images" => CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES,
                "skip_global_memory" => CU_COREDUMP_SKIP_GLOBAL_MEMORY,
                "skip_shared_memory" => CU_COREDUMP_SKIP_SHARED_MEMORY,
                "skip_local_memory" => CU_COREDUMP_SKIP_LOCAL_MEMORY,
                "skip_abort" => CU_COREDUMP_SKIP_ABORT,
                "skip_constbank_memory" => CU_COREDUMP_SKIP_CONSTBANK_MEMORY,
                "gzip_compress" => CU_COREDUMP_GZIP_COMPRESS,
                _ => 0,
            };
        }
        if set("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", false) {
            flags |= CU_COREDUMP_LIGHTWEIGHT_FLAGS;
        }
        if !set("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", true) {
            flags |= CU_COREDUMP_SKIP_ABORT;
        }
        Settings {
            enabled: set("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", false),
            user_trigger: set("CUDA_ENABLE_USER_TRIGGERED_COREDUMP", false),
            file: expand(&variable("CUDA_COREDUMP_FILE").unwrap_or_default()),
            pipe: expand(&variable("CUDA_COREDUMP_PIPE").unwrap_or_default()),
            flags,
        }
    }

    /// A setting.
    pub fn get(&self, attribute: CUcoredumpSettings) -> CuResult<Value> {
        Ok(match attribute {
            CU_COREDUMP_ENABLE_ON_EXCEPTION => Value::Truth(self.enabled),
            CU_COREDUMP_TRIGGER_HOST => Value::Truth(self.triggers_host()),
            CU_COREDUMP_LIGHTWEIGHT => Value::Truth(self.is_lightweight()),
            CU_COREDUMP_ENABLE_USER_TRIGGER => Value::Truth(self.user_trigger),
            CU_COREDUMP_FILE => Value::Text(self.file.clone()),
            CU_COREDUMP_PIPE => Value::Text(self.pipe.clone()),
            CU_COREDUMP_GENERATION_FLAGS => Value::Flags(self.flags),
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        })
    }

    /// A setting that a context has of its own: all but those about users' triggers.
    pub fn get_of_context(&self, attribute: CUcoredumpSettings) -> CuResult<Value> {
        of_context_too(attribute)?;
        self.get(attribute)
    }

    /// Sets a setting from exactly as many bytes as it has.
    pub fn set(&mut self, attribute: CUcoredumpSettings, value: &[u8]) -> CuResult {
        let truth = || match value {
            [byte] => Ok(*byte != 0),
            _ => Err(CUDA_ERROR_INVALID_VALUE),
        };
        match attribute {
            CU_COREDUMP_ENABLE_ON_EXCEPTION => self.enabled = truth()?,
            // These two are names for flags.
            CU_COREDUMP_TRIGGER_HOST if truth()? => self.flags &= !CU_COREDUMP_SKIP_ABORT,
            CU_COREDUMP_TRIGGER_HOST => self.flags |= CU_COREDUMP_SKIP_ABORT,
            CU_COREDUMP_LIGHTWEIGHT if truth()? => self.flags |= CU_COREDUMP_LIGHTWEIGHT_FLAGS,
            CU_COREDUMP_LIGHTWEIGHT => self.flags &= !CU_COREDUMP_LIGHTWEIGHT_FLAGS,
            CU_COREDUMP_ENABLE_USER_TRIGGER => {
                self.user_trigger = truth()?;
                if self.user_trigger && self.pipe.is_empty() {
                    self.pipe = format!("corepipe_{}_{}", host_name(), std::process::id());
                }
            }
            CU_COREDUMP_FILE => self.file = read_text(value)?,
            // Somebody may be writing there already.
            CU_COREDUMP_PIPE if self.user_trigger => return Err(CUDA_ERROR_NOT_SUPPORTED.into()),
            CU_COREDUMP_PIPE => self.pipe = read_text(value)?,
            CU_COREDUMP_GENERATION_FLAGS => {
                self.flags = u32::from_ne_bytes(value.try_into().map_err(|_| CUDA_ERROR_INVALID_VALUE)?);
            }
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
        Ok(())
    }

    /// Likewise of a context.
    pub fn set_of_context(&mut self, attribute: CUcoredumpSettings, value: &[u8]) -> CuResult {
        of_context_too(attribute)?;
        self.set(attribute, value)
    }

    fn triggers_host(&self) -> bool {
        self.flags & CU_COREDUMP_SKIP_ABORT == 0
    }

    fn is_lightweight(&self) -> bool {
        self.flags & CU_COREDUMP_LIGHTWEIGHT_FLAGS == CU_COREDUMP_LIGHTWEIGHT_FLAGS
    }

    /// Where the report goes.
    fn file_name(&self) -> String {
        expand(if self.file.is_empty() { "core_%t_%h_%p.txt" } else { &self.file })
    }
}

/// A setting's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Truth(bool),
    Flags(u32),
    Text(String),
}

impl Value {
    /// How many bytes it may need.
    pub fn room(&self) -> usize {
        match self {
            Value::Truth(_) => 1,
            Value::Flags(_) => 4,
            Value::Text(_) => MAX_TEXT,
        }
    }
}

fn of_context_too(attribute: CUcoredumpSettings) -> CuResult {
    match attribute {
        CU_COREDUMP_ENABLE_USER_TRIGGER | CU_COREDUMP_PIPE => Err(CUDA_ERROR_INVALID_VALUE.into()),
        _ => Ok(()),
    }
}

/// `%h`, `%p` and `%t` in a file's name are the machine, the process and the time in seconds.
fn expand(name: &str) -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let name = name.replace("%h", &host_name()).replace("%p", &std::process::id().to_string());
    name.replace("%t", &time.to_string())
}

/// A text that ends in NUL, or with the bytes.
fn read_text(value: &[u8]) -> CuResult<String> {
    if value.len() > MAX_TEXT {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let bytes = CStr::from_bytes_until_nul(value).map_or(value, CStr::to_bytes);
    Ok(String::from_utf8(bytes.to_vec()).map_err(|_| CUDA_ERROR_INVALID_VALUE)?)
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        Settings::from_variables(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn the_environment_sets_them() {
        let plain = settings(&[]);
        assert!(!plain.enabled && plain.triggers_host() && plain.flags == 0);
        assert!(plain.file_name().starts_with("core_"), "{plain:?}");
        let set = settings(&[
            ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"),
            ("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", "0"),
            ("CUDA_COREDUMP_FILE", "/tmp/a.%p"),
            ("CUDA_COREDUMP_GENERATION_FLAGS", "skip_abort, skip_global_memory"),
        ]);
        assert!(set.enabled && !set.triggers_host());
        assert_eq!(set.flags, CU_COREDUMP_SKIP_ABORT | CU_COREDUMP_SKIP_GLOBAL_MEMORY);
        assert_eq!(set.file_name(), format!("/tmp/a.{}", std::process::id()));
        assert!(settings(&[("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "1")]).is_lightweight());
    }

    #[test]
    fn a_name_is_not_too_long() {
        let mut settings = settings(&[]);
        settings.set(CU_COREDUMP_FILE, &[b'a'; MAX_TEXT]).unwrap();
        assert!(settings.set(CU_COREDUMP_FILE, &[b'a'; MAX_TEXT + 1]).is_err());
        assert!(settings.set(CU_COREDUMP_FILE, &[0xff, 0xfe]).is_err(), "no text");
        assert_eq!(settings.get(CU_COREDUMP_FILE), Ok(Value::Text("a".repeat(MAX_TEXT))));
        settings.set(CU_COREDUMP_FILE, b"b\0c").unwrap();
        assert_eq!(settings.get(CU_COREDUMP_FILE), Ok(Value::Text("b".into())));
    }
}
