//! The log of errors: what failed lately, for programs that ask.
//!
//! Each call that fails leaves a line that says so in the words of NVIDIA's driver, before it another if more is known, and a kernel leaves one.
//! Listeners hear what a line says, without the time and the thread at its beginning. The newest lines are kept, as many as fit
//! [`CAPACITY`]; whoever reads later than that learns that lines are missing. Lines have numbers, which are the places in the
//! log that programs hold.

use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::{FaultReport, Platform};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CString, c_void};
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many bytes of lines are kept, their ends included; the manual's number.
pub const CAPACITY: usize = 25600;

/// Says in a dump that lines are missing at its beginning, because they were lost or do not fit.
const LOST: &str = "... older messages are lost ...";
const CUT: &str = "... older messages do not fit ...";

/// A function of the program's that is told of lines.
struct Listener {
    handle: usize,
    function: unsafe extern "C" fn(*mut c_void, CUlogLevel, *mut std::ffi::c_char, usize),
    /// The program's datum, an address of its own.
    datum: usize,
    /// The first line that it has not been told of.
    next: u32,
}

/// A line, and where in it the message begins.
pub struct Line {
    text: CString,
    begins: usize,
}

#[derive(Default)]
struct Log {
    lines: VecDeque<Arc<Line>>,
    bytes: usize,
    /// The number of the line to come. It wraps.
    next: u32,
    listeners: Vec<Listener>,
    handles: usize,
}

/// Never dropped. Nothing is called under the lock.
static LOG: LazyLock<Mutex<Log>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, Log> {
    locked(&LOG)
}

thread_local! {
    /// What the thread's last error told beyond its code.
    static DETAIL: RefCell<Option<(CUresult, String)>> = const { RefCell::new(None) };
}

/// Remembers what an error tells, for the line of the call that fails with it.
pub fn remember_detail(code: CUresult, text: &str) {
    // At a thread's end there may be no place any more: then the line tells the code only.
    let _ = DETAIL.try_with(|detail| detail.replace(Some((code, text.to_owned()))));
}

/// Logs that a call failed, and tells listeners of all that they have not heard of.
pub fn failed(function: &str, code: CUresult) {
    // "Not ready" is an answer. A forked process has nothing of the driver's, perhaps not even the lock.
    if code == CUDA_ERROR_NOT_READY || Platform::check_process().is_err() {
        return;
    }
    let detail = DETAIL.try_with(|detail| detail.take()).ok().flatten();
    if let Some((_, text)) = detail.filter(|(of, _)| *of == code) {
        // A compiler's log has many lines; the first says most.
        if let Some(line) = text.lines().map(str::trim).find(|line| !line.is_empty()) {
            push(line);
        }
    }
    let name = code.name().unwrap_or("an unknown error");
    push(&format!("Returning {} ({name}) from {function}", code.0));
    tell_listeners();
}

/// Logs that a kernel failed. Listeners hear of it from the next call that fails, which is the next that the failure
/// concerns: this one may hold the device's locks.
pub fn kernel_failed(report: &FaultReport) {
    push(&report.to_string());
}

/// The number of the line to come.
pub fn end() -> u32 {
    lock().next
}

/// Has a function told of lines from now on; its handle.
pub fn listen(
    function: unsafe extern "C" fn(*mut c_void, CUlogLevel, *mut std::ffi::c_char, usize),
    datum: *mut c_void,
) -> CUlogsCallbackHandle {
    let mut log = lock();
    log.handles += 1;
    // Looks like an address, and is never used again.
    let handle = log.handles << 4;
    let next = log.next;
    log.listeners.push(Listener { handle, function, datum: datum.expose_provenance(), next });
    CUlogsCallbackHandle(handle)
}

/// Ends that; whether there was such a listener.
pub fn ignore(handle: CUlogsCallbackHandle) -> bool {
    let mut log = lock();
    let before = log.listeners.len();
    log.listeners.retain(|listener| listener.handle != handle.0);
    log.listeners.len() < before
}

/// The lines from number `from` on, or all; whether some are lost; and the number of the line to come. From a number that
/// no line had yet there are none, and its line is the one to come.
pub fn read(from: Option<u32>) -> (Vec<Arc<Line>>, bool, u32) {
    let log = lock();
    let kept = log.lines.len() as u32;
    let wanted = match from {
        Some(from) if from > log.next => return (Vec::new(), false, from),
        Some(from) => log.next - from,
        None => log.next,
    };
    let skipped = kept.saturating_sub(wanted) as usize;
    (log.lines.iter().skip(skipped).cloned().collect(), wanted > kept, log.next)
}

/// Lines as one text of at most `limit` bytes; the newest, if not all fit. `None` if none fits.
pub fn text(lines: &[Arc<Line>], lost: bool, limit: usize) -> Option<Vec<u8>> {
    let size = |lines: &[Arc<Line>]| lines.iter().map(|line| line.bytes()).sum::<usize>();
    let head = if lost { LOST.len() + 1 } else { 0 };
    if head + size(lines) <= limit {
        return Some(join(lost.then_some(LOST), lines));
    }
    // Without the first line that makes room for the notice.
    let begin = (1..lines.len()).find(|&begin| CUT.len() + 1 + size(&lines[begin..]) <= limit)?;
    Some(join(Some(CUT), &lines[begin..]))
}

fn join(head: Option<&str>, lines: &[Arc<Line>]) -> Vec<u8> {
    let lines = lines.iter().map(|line| line.text.to_bytes());
    head.map(str::as_bytes).into_iter().chain(lines).flat_map(|line| [line, b"\n"].concat()).collect()
}

impl Line {
    /// Bytes that it takes, its end included.
    fn bytes(&self) -> usize {
        self.text.count_bytes() + 1
    }
}

impl Log {
    fn push(&mut self, line: Line) {
        self.bytes += line.bytes();
        self.lines.push_back(Arc::new(line));
        self.next = self.next.wrapping_add(1);
        while self.bytes > CAPACITY {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    /// What each listener has not heard of yet.
    fn news(&mut self) -> Vec<(usize, Vec<Arc<Line>>)> {
        let (next, kept) = (self.next, self.lines.len());
        let mut news = Vec::new();
        for listener in &mut self.listeners {
            let missed = next.wrapping_sub(listener.next) as usize;
            listener.next = next;
            let lines = self.lines.iter().skip(kept.saturating_sub(missed)).cloned().collect();
            news.push((listener.handle, lines));
        }
        news
    }
}

fn push(message: &str) {
    let head = format!("{}[{}][CUDA][E] ", time_of_day(), thread());
    let line = format!("{head}{message}");
    if let Some(file) = log_file() {
        // There is nobody to tell that the log cannot be written.
        let _ = locked(file).write_all(format!("{line}\n").as_bytes());
    }
    let line = line.replace('\0', " ");
    let text = CString::new(line).expect("the NULs were replaced");
    lock().push(Line { text, begins: head.len() });
}

fn tell_listeners() {
    if lock().listeners.is_empty() {
        return;
    }
    let news = lock().news();
    for (handle, lines) in news {
        for line in lines {
            // Another listener, or this one, may have ended it meanwhile.
            let listener = {
                let log = lock();
                let found = log.listeners.iter().find(|listener| listener.handle == handle);
                found.map(|listener| (listener.function, listener.datum))
            };
            let Some((function, datum)) = listener else { break };
            let mut text = line.text.to_bytes_with_nul()[line.begins..].to_vec();
            let datum = std::ptr::with_exposed_provenance_mut(datum);
            // SAFETY: the function and its datum are what the program registered; the text ends in NUL and is a copy, which
            // the function may write to.
            unsafe { function(datum, CU_LOG_LEVEL_ERROR, text.as_mut_ptr().cast(), text.len() - 1) };
        }
    }
}

/// Hours, minutes, seconds and milliseconds, in UTC.
fn time_of_day() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = now.as_secs() % 86400;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("[{hours:02}:{minutes:02}:{:02}.{:03}]", seconds % 60, now.subsec_millis())
}

/// What the C library calls this thread.
fn thread() -> u64 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::pthread_self() }
}

/// Where `CUDA_LOG_FILE` wants lines to go as well: `stdout`, `stderr` or a file.
fn log_file() -> Option<&'static Mutex<Box<dyn Write + Send>>> {
    static FILE: OnceLock<Option<Mutex<Box<dyn Write + Send>>>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = std::env::var_os("CUDA_LOG_FILE").filter(|path| !path.is_empty())?;
        let file: Box<dyn Write + Send> = match path.to_str() {
            Some("stdout") => Box::new(std::io::stdout()),
            Some("stderr") => Box::new(std::io::stderr()),
            _ => Box::new(File::options().append(true).create(true).open(path).ok()?),
        };
        Some(Mutex::new(file))
    })
    .as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line { text: CString::new(text).unwrap(), begins: 0 }
    }

    fn log_of(lines: &[&str]) -> Log {
        let mut log = Log::default();
        for text in lines {
            log.push(line(text));
        }
        log
    }

    #[test]
    fn the_oldest_lines_make_room() {
        let long = "x".repeat(CAPACITY / 4);
        let log = log_of(&[&long, &long, &long, "a", "b"]);
        assert_eq!((log.lines.len(), log.next), (5, 5));
        let log = log_of(&[&long, &long, &long, &long, "a", "b"]);
        assert_eq!((log.lines.len(), log.next), (5, 6));
        assert!(log.bytes <= CAPACITY);
        let log = log_of(&["a", &"x".repeat(CAPACITY)]);
        assert_eq!((log.lines.len(), log.bytes), (0, 0));
    }

    #[test]
    fn a_text_has_the_newest_lines_that_fit() {
        let lines: Vec<_> = log_of(&["first", "second", "third"]).lines.into();
        let text = |lost, limit| text(&lines, lost, limit).map(|text| String::from_utf8(text).unwrap());
        assert_eq!(text(false, 19).as_deref(), Some("first\nsecond\nthird\n"));
        assert_eq!(text(false, 18), None);
        assert_eq!(text(true, 100).unwrap(), format!("{LOST}\nfirst\nsecond\nthird\n"));
        assert_eq!(text(true, LOST.len() + 19), Some(format!("{CUT}\nsecond\nthird\n")));
        let long = "x".repeat(CUT.len());
        let lines: Vec<_> = log_of(&[&long, "second", "third"]).lines.into();
        let text = super::text(&lines, false, CUT.len() + 13).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), format!("{CUT}\nthird\n"));
        assert!(super::text(&[], false, 0).is_some_and(|text| text.is_empty()));
    }

    #[test]
    fn a_listener_hears_each_line_once() {
        let mut log = log_of(&["before"]);
        unsafe extern "C" fn nothing(_: *mut c_void, _: CUlogLevel, _: *mut std::ffi::c_char, _: usize) {}
        log.listeners.push(Listener { handle: 1, function: nothing, datum: 0, next: log.next });
        log.push(line("one"));
        log.push(line("two"));
        let mut heard = || {
            let news = log.news();
            news[0].1.iter().map(|line| line.text.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(heard(), ["one", "two"]);
        assert!(heard().is_empty());
    }
}
