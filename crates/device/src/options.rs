//! What a user can set, and where it is read from the environment.

use std::path::PathBuf;

use crate::memory::machine;

/// Settings of a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of virtual devices (`ANYWARP_DEVICES`).
    pub devices: usize,
    /// The devices to show, in this order, as `CUDA_VISIBLE_DEVICES` lists them; `None` shows all. One that is there twice is an error.
    pub visible: Option<Vec<usize>>,
    /// Worker threads (`ANYWARP_THREADS`); each device has its own.
    pub threads: usize,
    /// Multiprocessors that a device says it has (`ANYWARP_MULTIPROCESSORS`); `None` is as many as
    /// [`multiprocessors`](Options::multiprocessors) says.
    pub multiprocessors: Option<usize>,
    /// Bytes of memory of each device (`ANYWARP_MEMORY`, with an optional `K`, `M`, `G` or `T`); `None` divides the machine's memory.
    pub memory: Option<u64>,
    /// Compute capability as in `sm_90` (`ANYWARP_SM`).
    pub sm: u32,
    /// Compile every kernel when its module is loaded (`CUDA_MODULE_LOADING=EAGER`).
    pub eager: bool,
    /// A launch returns when the kernel is done (`CUDA_LAUNCH_BLOCKING=1`).
    pub blocking_launches: bool,
    /// Describe faults of kernels on standard error (`ANYWARP_QUIET=1` turns it off).
    pub report_faults: bool,
    /// Where this user's processes tell each other what they use of the devices ([`usage`](crate::usage)); `None`: they do not.
    pub shared_folder: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            devices: 1,
            visible: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            multiprocessors: None,
            memory: None,
            sm: 90,
            eager: false,
            blocking_launches: false,
            report_faults: true,
            shared_folder: None,
        }
    }
}

/// Most devices, and most threads and multiprocessors of one, that a setting can ask for.
const MAX_DEVICES: usize = crate::usage::MAX_DEVICES;
const MAX_THREADS: usize = 1024;
const MAX_MULTIPROCESSORS: usize = 1024;
/// Fewest multiprocessors unless a setting says otherwise. Each block of a cluster is on one of its own, and programs launch nothing where they find room for
/// no cluster: those of any device have up to eight. Not more, for as many more blocks do so much more besides their share of the work.
const MULTIPROCESSORS: usize = 8;

impl Options {
    /// The settings of this process's environment.
    pub fn from_environment() -> Options {
        let options = Options::from_variables(|name| std::env::var(name).ok());
        Options { shared_folder: crate::usage::shared_folder(), ..options }
    }

    /// Bytes of memory of each device.
    pub fn memory_of_device(&self) -> u64 {
        self.memory.unwrap_or_else(|| machine::total() / self.devices.max(1) as u64)
    }

    /// How many multiprocessors a device has. Programs make grids of so many blocks, or of so many times as many as run together on one, and have each do
    /// an equal part of the work: it is a multiple of the threads, so that all of them end at the same time.
    pub fn multiprocessors(&self) -> u32 {
        let multiple = MULTIPROCESSORS.next_multiple_of(self.threads.max(1));
        self.multiprocessors.unwrap_or(multiple) as u32
    }

    /// The settings that `variable` gives. What cannot be understood counts as not set.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Options {
        let number = |name: &str| variable(name).and_then(|text| text.trim().parse::<usize>().ok());
        let mut options = Options::default();
        if let Some(devices) = number("ANYWARP_DEVICES") {
            options.devices = devices.min(MAX_DEVICES);
        }
        if let Some(threads) = number("ANYWARP_THREADS") {
            options.threads = threads.clamp(1, MAX_THREADS);
        }
        if let Some(multiprocessors) = number("ANYWARP_MULTIPROCESSORS") {
            options.multiprocessors = Some(multiprocessors.clamp(1, MAX_MULTIPROCESSORS));
        }
        if let Some(sm) = number("ANYWARP_SM").filter(|sm| (10..1000).contains(sm)) {
            options.sm = sm as u32;
        }
        options.memory = variable("ANYWARP_MEMORY").and_then(|text| parse_bytes(&text));
        options.visible = variable("CUDA_VISIBLE_DEVICES").map(|list| parse_visible(&list, options.devices));
        options.eager =
            variable("CUDA_MODULE_LOADING").is_some_and(|mode| mode.eq_ignore_ascii_case("eager"));
        options.blocking_launches =
            variable("CUDA_LAUNCH_BLOCKING").is_some_and(|text| !matches!(text.trim(), "" | "0"));
        options.report_faults =
            variable("ANYWARP_QUIET").is_none_or(|quiet| quiet == "0" || quiet.is_empty());
        options
    }
}

/// Reads `12G`.
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (&text[..text.len() - 1], 10),
        'M' => (&text[..text.len() - 1], 20),
        'G' => (&text[..text.len() - 1], 30),
        'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// The devices of a list; the first entry that names none ends it. What follows a number in its entry does not matter, nor do bits
/// above 32, as on an H200.
fn parse_visible(list: &str, devices: usize) -> Vec<usize> {
    let mut visible = Vec::new();
    for entry in list.split(',') {
        match leading_number(entry) {
            Some(ordinal) if ordinal < devices => visible.push(ordinal),
            _ => break,
        }
    }
    visible
}

/// The number that a text begins with, as C reads it.
fn leading_number(text: &str) -> Option<usize> {
    let text = text.trim_start();
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    let number = digits.map(|digit| u32::from(digit - b'0'));
    let number = number.reduce(|number, digit| number.wrapping_mul(10).wrapping_add(digit))?;
    (number == 0 || !is_negative).then_some(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(variables: &[(&str, &str)]) -> Options {
        Options::from_variables(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn memory_with_units() {
        assert_eq!(parse_bytes("8G"), Some(8 << 30));
        assert_eq!(parse_bytes(" 512 m "), Some(512 << 20));
        assert_eq!(parse_bytes("4096"), Some(4096));
        for bad in ["", "G", "0", "-1", "1X", "99999999999T"] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn blocking_launches() {
        let blocking = |value| options(&[("CUDA_LAUNCH_BLOCKING", value)]).blocking_launches;
        assert!(blocking("1"));
        assert!(!blocking("0") && !blocking("") && !options(&[]).blocking_launches);
    }

    #[test]
    fn multiprocessors_are_at_least_8_and_a_multiple_of_the_threads() {
        let of = |threads, set| {
            let list = [("ANYWARP_THREADS", threads), ("ANYWARP_MULTIPROCESSORS", set)];
            options(&list).multiprocessors()
        };
        for (threads, expected) in [("1", 8), ("2", 8), ("6", 12), ("8", 8), ("12", 12), ("40", 40)] {
            assert_eq!(of(threads, ""), expected, "{threads} threads");
        }
        assert_eq!((of("16", "2"), of("2", "132"), of("2", "0")), (2, 132, 1));
    }

    #[test]
    fn visible_devices() {
        let visible = |list| options(&[("ANYWARP_DEVICES", "4"), ("CUDA_VISIBLE_DEVICES", list)]).visible;
        assert_eq!(visible("2,0"), Some(vec![2, 0]));
        assert_eq!(visible("1,-1,2"), Some(vec![1]));
        assert_eq!(visible("0,7,1"), Some(vec![0]));
        assert_eq!(visible("0,0"), Some(vec![0, 0]));
        assert_eq!(visible("3abc,+1, 2 ,0x3,-0,4294967297"), Some(vec![3, 1, 2, 0, 0, 1]));
        for none in ["abc", "-1", ",0", "4", "GPU-", "-"] {
            assert_eq!(visible(none), Some(vec![]), "{none}");
        }
        assert_eq!(visible(""), Some(vec![]));
        assert_eq!(options(&[]).visible, None);
    }
}
