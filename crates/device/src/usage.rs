//! What this user's processes use of the devices, told to each other.
//!
//! Every process that has devices has a page of numbers in a folder that the processes of its user share: memory, contexts,
//! and how long kernels ran. It holds a lock on the page's file as long as it lives, however it ends, so a page without a lock
//! is a dead process's, and whoever finds it removes it. Only its process writes a page, and what others read there is
//! numbers, nothing that could lead them astray; but one word of it says whether the process may go on, and is for others to
//! write ([`checkpoint`]).

use std::fs::{self, File};
use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::{checkpoint, clock};

/// Devices of a machine that a page has room for.
pub const MAX_DEVICES: usize = 64;

/// What one process uses of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Bytes of memory.
    pub memory: u64,
    /// Contexts that are alive.
    pub contexts: u64,
    /// Nanoseconds of the last [`WINDOW`] in which kernels ran.
    pub busy: u64,
}

/// What one process uses.
#[derive(Clone, Debug)]
pub struct ProcessUse {
    /// The process.
    pub process: u32,
    /// By the machine's numbers of the devices.
    pub devices: Vec<DeviceUse>,
}

/// Nanoseconds that [`DeviceUse::busy`] is about.
pub const WINDOW: u64 = SLICE * 8;

/// Time is counted in slices of so many nanoseconds; the newest are kept.
const SLICE: u64 = 125_000_000;
const SLICES: usize = 16;

/// Tells a page from other files, and this layout from others.
const MAGIC: u64 = u64::from_ne_bytes(*b"anywarp1");

/// What processes see of each other. Zero at first.
#[repr(C)]
struct Page {
    magic: AtomicU64,
    process: AtomicU64,
    /// Whether the process may use its devices (`checkpoint`): the one word that other processes write.
    state: AtomicU64,
    devices: [Counters; MAX_DEVICES],
}

#[repr(C, align(64))]
struct Counters {
    memory: AtomicU64,
    contexts: AtomicU64,
    /// Grids that run, and since when one or more do.
    running: AtomicU64,
    since: AtomicU64,
    /// For each slice of time, its number in the upper half and the busy nanoseconds in the lower.
    busy: [AtomicU64; SLICES],
}

impl Counters {
    fn new() -> Counters {
        let zero = || AtomicU64::new(0);
        let busy = std::array::from_fn(|_| zero());
        Counters { memory: zero(), contexts: zero(), running: zero(), since: zero(), busy }
    }

    /// Counts a stretch of time, as far as it is not too long ago.
    fn add_busy(&self, from: u64, to: u64) {
        let mut from = from.max(to.saturating_sub(SLICE * (SLICES as u64 - 1)));
        while from < to {
            let slice = from / SLICE;
            let end = to.min((slice + 1) * SLICE);
            let word = &self.busy[slice as usize % SLICES];
            let add = |old: u64| {
                let counted = if old >> 32 == slice & 0xffff_ffff { old & 0xffff_ffff } else { 0 };
                Some(slice << 32 | (counted + (end - from)).min(SLICE))
            };
            // The closure never refuses.
            let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
            from = end;
        }
    }

    fn read(&self, now: u64) -> DeviceUse {
        let current = now / SLICE;
        let recent = |word: &AtomicU64| {
            let word = word.load(Ordering::Relaxed);
            let age = (current & 0xffff_ffff).wrapping_sub(word >> 32);
            if (1..=WINDOW / SLICE).contains(&age) { (word & 0xffff_ffff).min(SLICE) } else { 0 }
        };
        let counted: u64 = self.busy.iter().map(recent).sum();
        // What runs is counted when it ends; until then it has been busy since it began.
        let (begin, end) = (current.saturating_sub(WINDOW / SLICE) * SLICE, current * SLICE);
        let running = match self.running.load(Ordering::Relaxed) {
            0 => 0,
            _ => end.saturating_sub(self.since.load(Ordering::Relaxed).max(begin)),
        };
        DeviceUse {
            memory: self.memory.load(Ordering::Relaxed),
            contexts: self.contexts.load(Ordering::Relaxed),
            busy: (counted + running).min(WINDOW),
        }
    }
}

/// Where this process counts what it uses of a device.
#[derive(Clone)]
pub(crate) struct Usage {
    page: Arc<Mapped>,
    device: usize,
}

impl Usage {
    /// A place that nobody else looks at.
    pub(crate) fn private() -> Usage {
        let page = Page {
            magic: AtomicU64::new(0),
            process: AtomicU64::new(0),
            state: AtomicU64::new(0),
            devices: std::array::from_fn(|_| Counters::new()),
        };
        Usage { page: Arc::new(Mapped::Own(Box::new(page))), device: 0 }
    }

    /// The place of the machine's device of this number, in this process's page if it has one.
    pub(crate) fn of_device(folder: Option<&Path>, device: usize) -> Usage {
        match folder.and_then(published).filter(|_| device < MAX_DEVICES) {
            Some(page) => Usage { page, device },
            None => Usage::private(),
        }
    }

    pub(crate) fn add_memory(&self, bytes: u64) {
        self.counters().memory.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn remove_memory(&self, bytes: u64) {
        self.counters().memory.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_context(&self) {
        self.counters().contexts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove_context(&self) {
        self.counters().contexts.fetch_sub(1, Ordering::Relaxed);
    }

    /// A grid begins.
    pub(crate) fn begin(&self, now: u64) {
        let counters = self.counters();
        if counters.running.fetch_add(1, Ordering::Relaxed) == 0 {
            counters.since.store(now, Ordering::Relaxed);
        }
    }

    /// A grid ends. Statistics: when another begins at the same moment, a little of either may be lost.
    pub(crate) fn end(&self, now: u64) {
        let counters = self.counters();
        let since = counters.since.load(Ordering::Relaxed);
        if counters.running.fetch_sub(1, Ordering::Relaxed) == 1 {
            counters.add_busy(since, now);
        }
    }

    /// Bytes of the device's memory that other processes use.
    pub(crate) fn memory_of_others(&self) -> u64 {
        let Mapped::Shared(shared) = &*self.page else { return 0 };
        let others = pages(&shared.folder).into_iter().filter(|page| page.inode != shared.inode);
        others.map(|page| page.devices[self.device].memory.load(Ordering::Relaxed)).sum()
    }

    fn counters(&self) -> &Counters {
        &self.page.devices[self.device]
    }
}

/// The folder that the processes of this user share: `ANYWARP_RUNTIME_DIR`, or one in the machine's shared memory. `None` if
/// there is none that only this user can write.
pub fn shared_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("ANYWARP_RUNTIME_DIR") {
        return if folder.is_empty() { None } else { Some(folder.into()) };
    }
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    let place = if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    Some(place.join(format!("anywarp-{user}")))
}

/// What each living process of this user uses, in order of their numbers.
pub fn processes(folder: &Path) -> Vec<ProcessUse> {
    let now = clock::now();
    let read = |page: SharedPage| ProcessUse {
        process: page.process.load(Ordering::Relaxed) as u32,
        devices: page.devices.iter().map(|counters| counters.read(now)).collect(),
    };
    let mut all: Vec<_> = pages(folder).into_iter().map(read).collect();
    all.sort_by_key(|found| found.process);
    all
}

/// A process that can be told to wait.
pub(crate) struct Remote(SharedPage);

impl Remote {
    /// The living process of this number, if it has devices and is this user's.
    pub(crate) fn find(folder: &Path, process: u32) -> Option<Remote> {
        let found = open_pages(folder, true).into_iter();
        found.map(Remote).find(|page| page.0.process.load(Ordering::Relaxed) == u64::from(process))
    }

    /// Whether it may use its devices.
    pub(crate) fn state(&self) -> &AtomicU64 {
        &self.0.state
    }

    /// Whether kernels of its run.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.devices.iter().any(|counters| counters.running.load(Ordering::Relaxed) > 0)
    }
}

/// This process's page, made at the first call; all later ones get the same.
fn published(folder: &Path) -> Option<Arc<Mapped>> {
    static PAGE: OnceLock<Option<Arc<Mapped>>> = OnceLock::new();
    let publish = || {
        let page = publish(folder)?;
        // SAFETY: the page stays mapped: what is published is never dropped.
        checkpoint::use_word(unsafe { &*std::ptr::from_ref(&page.state) });
        DESCRIPTOR.store(page.lock.as_ref()?.as_raw_fd(), Ordering::Relaxed);
        Some(Arc::new(Mapped::Shared(page)))
    };
    PAGE.get_or_init(publish).clone()
}

/// The descriptor of this process's page, for [`forget_in_child`]; -1 without one.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

/// In a child of this process: the parent's page is not the child's, and the lock on it must end with the parent.
///
/// Only what is allowed between a fork and the next program.
pub(crate) fn forget_in_child() {
    let descriptor = DESCRIPTOR.swap(-1, Ordering::Relaxed);
    if descriptor >= 0 {
        // SAFETY: the child's copy of a descriptor, whose owner is never dropped.
        unsafe { libc::close(descriptor) };
    }
}

fn publish(folder: &Path) -> Option<SharedPage> {
    // It may be there already.
    let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    if !is_ours_alone(folder) {
        return None;
    }
    // Those of processes that are gone make way.
    drop(pages(folder));
    let name = format!("{}-{}", std::process::id(), clock::now());
    let hidden = folder.join(format!(".{name}"));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&hidden).ok()?;
    let page = fill(&file, folder, &hidden, &folder.join(name));
    if page.is_none() {
        let _ = fs::remove_file(&hidden);
    }
    page
}

/// Makes a file this process's page, and gives it the name under which others find it.
fn fill(file: &File, folder: &Path, hidden: &Path, name: &Path) -> Option<SharedPage> {
    // A file system that is full says so here. In a file that is merely long enough, the first store would be a SIGBUS.
    let reserve = || {
        // SAFETY: our own descriptor.
        unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size_of::<Page>() as libc::off_t) }
    };
    let failed = std::iter::repeat_with(reserve).find(|code| *code != libc::EINTR);
    if failed != Some(0) {
        return None;
    }
    let mut page = SharedPage::map(file, folder, true)?;
    page.process.store(std::process::id().into(), Ordering::Relaxed);
    page.magic.store(MAGIC, Ordering::Release);
    // Opened once more, because a lock lives as long as a mapping that was made through the same opening, and a child of this
    // process inherits the mapping. Locked before others can find it.
    let lock = File::open(hidden).ok()?;
    // SAFETY: our own descriptor.
    let locked = unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
    if !locked || fs::rename(hidden, name).is_err() {
        return None;
    }
    page.lock = Some(lock.into());
    Some(page)
}

/// Whether a folder is a real one, this user's, and nobody else's to write.
fn is_ours_alone(folder: &Path) -> bool {
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0)
}

/// The pages of living processes, for reading.
fn pages(folder: &Path) -> Vec<SharedPage> {
    open_pages(folder, false)
}

fn open_pages(folder: &Path, writable: bool) -> Vec<SharedPage> {
    if !is_ours_alone(folder) {
        return Vec::new();
    }
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let open = |path: PathBuf| {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = File::options().read(true).write(writable).custom_flags(flags).open(&path).ok()?;
        if file.metadata().ok()?.len() != size_of::<Page>() as u64 {
            return None;
        }
        // SAFETY: our own descriptor; the lock ends with it.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) } == 0 {
            // Its process is gone. A name is never used twice, so this is still the file that was looked at.
            let _ = fs::remove_file(&path);
            return None;
        }
        SharedPage::map(&file, folder, writable).filter(|page| page.magic.load(Ordering::Acquire) == MAGIC)
    };
    let is_page = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| !name.starts_with('.'));
    files.filter(|file| is_page(&file.file_name())).filter_map(|file| open(file.path())).collect()
}

/// A page, wherever it is.
enum Mapped {
    Own(Box<Page>),
    Shared(SharedPage),
}

impl Deref for Mapped {
    type Target = Page;

    fn deref(&self) -> &Page {
        match self {
            Mapped::Own(page) => page,
            Mapped::Shared(page) => page,
        }
    }
}

/// A page in a file, mapped.
struct SharedPage {
    page: NonNull<Page>,
    inode: u64,
    folder: PathBuf,
    /// The file, whose lock says that its process lives; of this process's page only.
    lock: Option<OwnedFd>,
}

// SAFETY: the mapping is this object's until it is dropped, and what is in it is atomic.
unsafe impl Send for SharedPage {}
// SAFETY: likewise.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    /// Maps a file of exactly a page's size.
    fn map(file: &File, folder: &Path, writable: bool) -> Option<SharedPage> {
        let inode = file.metadata().ok()?.ino();
        let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: a fresh mapping of our file.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Page>(),
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        Some(SharedPage { page: NonNull::new(start.cast())?, inode, folder: folder.to_owned(), lock: None })
    }
}

impl Deref for SharedPage {
    type Target = Page;

    fn deref(&self) -> &Page {
        // SAFETY: mapped as long as this object lives, aligned to a page of memory, and made of atomics. Files of the folder are
        // never made shorter.
        unsafe { self.page.as_ref() }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody can use it any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), size_of::<Page>()) };
    }
}

#[cfg(test)]
#[cfg(not(miri))] // shared mappings and locks
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("anywarp-usage-{test}-{}", std::process::id()));
            fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_a_process_counts_others_read() {
        let folder = Folder::new("counts");
        let page = publish(&folder.0).unwrap();
        let usage = Usage { page: Arc::new(Mapped::Shared(page)), device: 3 };
        usage.add_memory(1000);
        usage.remove_memory(300);
        usage.add_context();
        let [found] = processes(&folder.0).try_into().unwrap();
        assert_eq!(found.process, std::process::id());
        assert_eq!(found.devices[3], DeviceUse { memory: 700, contexts: 1, busy: 0 });
        assert_eq!(found.devices[2], DeviceUse::default());
        assert_eq!(usage.memory_of_others(), 0, "its own does not count");
        // As another process would see it.
        let other = Usage { page: Arc::new(Mapped::Shared(publish(&folder.0).unwrap())), device: 3 };
        assert_eq!(other.memory_of_others(), 700);
    }

    #[test]
    fn a_page_without_a_lock_is_a_dead_process() {
        let folder = Folder::new("dead");
        let mut page = publish(&folder.0).unwrap();
        assert_eq!(processes(&folder.0).len(), 1);
        // What the end of the process does.
        page.lock = None;
        assert!(processes(&folder.0).is_empty());
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "and its file is gone");
        drop(page);
    }

    #[test]
    fn what_cannot_be_published_leaves_no_file() {
        let folder = Folder::new("unpublished");
        let hidden = folder.0.join(".hidden");
        fs::write(&hidden, "").unwrap();
        // No space can be had for a file that is only read.
        let read_only = File::open(&hidden).unwrap();
        assert!(fill(&read_only, &folder.0, &hidden, &folder.0.join("name")).is_none());
        assert!(!folder.0.join("name").exists());
        fs::remove_file(&hidden).unwrap();
    }

    #[test]
    fn a_page_has_its_space_before_it_is_mapped() {
        let folder = Folder::new("space");
        let page = publish(&folder.0).unwrap();
        let file = fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 >= size_of::<Page>() as u64);
        drop(page);
        fs::remove_file(file.path()).unwrap();
    }

    #[test]
    fn other_files_and_folders_of_others_are_left_alone() {
        let folder = Folder::new("others");
        fs::write(folder.0.join("note"), "not a page").unwrap();
        fs::write(folder.0.join("zeros"), vec![0; size_of::<Page>()]).unwrap();
        assert!(processes(&folder.0).is_empty());
        assert!(folder.0.join("note").is_file());
        let link = folder.0.join("link");
        std::os::unix::fs::symlink(&folder.0, &link).unwrap();
        assert!(publish(&link).is_none());
        assert!(processes(Path::new("/nowhere")).is_empty());
    }

    #[test]
    fn time_is_counted_in_slices_and_forgotten() {
        let counters = Counters::new();
        let start = 1000 * SLICE;
        counters.add_busy(start + SLICE / 2, start + SLICE * 2);
        assert_eq!(counters.read(start + SLICE * 3).busy, SLICE * 3 / 2);
        counters.add_busy(start, start + SLICE / 2);
        assert_eq!(counters.read(start + SLICE * 3).busy, 2 * SLICE);
        assert_eq!(counters.read(start + SLICE * 9).busy, SLICE, "the first slice is too old");
        assert_eq!(counters.read(start + SLICE * 30).busy, 0);
        // A slice's place is used again.
        counters.add_busy(start + SLICE * 16, start + SLICE * 17);
        assert_eq!(counters.read(start + SLICE * 18).busy, SLICE);
        counters.add_busy(0, start + SLICE * 40);
        assert_eq!(counters.read(start + SLICE * 40).busy, WINDOW);
    }

    #[test]
    fn a_grid_that_runs_counts_before_it_ends() {
        let usage = Usage::private();
        let start = 1000 * SLICE;
        usage.begin(start);
        usage.begin(start + SLICE);
        assert_eq!(usage.counters().read(start + SLICE * 2).busy, SLICE * 2);
        usage.end(start + SLICE * 2);
        usage.end(start + SLICE * 3);
        assert_eq!(usage.counters().read(start + SLICE * 4).busy, SLICE * 3, "two at a time count once");
        usage.begin(start);
        assert_eq!(usage.counters().read(start + SLICE * 100).busy, WINDOW);
    }
}
