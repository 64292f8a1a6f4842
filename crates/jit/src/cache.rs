//! Compiled kernels on disk, shared by all processes of a user.
//!
//! An entry is a file named by its key. It is written under another name and renamed, so readers see all of it or nothing;
//! a checksum finds what a disk or a crash has damaged. Entries are code, so only those of the user's own, or of root's, count. When the entries outgrow the limit, those not used for longest are
//! deleted; a reader takes a whole file at once and does not mind. A directory that cannot be used means no cache.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `CUDA_CACHE_PATH` | the directory, in which ours is `anywarp` (else `$XDG_CACHE_HOME/anywarp`, `~/.cache/anywarp`) |
//! | `CUDA_CACHE_DISABLE` | 1: no cache |
//! | `CUDA_CACHE_MAXSIZE` | limit in bytes, 1 GiB unless given |

use crate::locked;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use twox_hash::{XxHash3_64, XxHash3_128};

/// What an entry is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u128);

impl Key {
    /// The key of these parts. Their boundaries count.
    pub fn of(parts: &[&[u8]]) -> Key {
        let mut digest = Vec::with_capacity(parts.len() * 24);
        for part in parts {
            digest.extend((part.len() as u64).to_le_bytes());
            digest.extend(XxHash3_128::oneshot(part).to_le_bytes());
        }
        Key(XxHash3_128::oneshot(&digest))
    }
}

/// A directory of entries.
#[derive(Debug)]
pub struct DiskCache {
    directory: PathBuf,
    limit: u64,
    /// The size of all entries when the directory was last looked through, and what this process has stored since.
    known: Mutex<Option<(u64, u64)>>,
}

/// The directory is looked through again when this process has stored such a part of the limit: others store too.
const LOOK_AGAIN: u64 = 64;

const MAGIC: &[u8; 8] = b"anywarp1";
const HEADER: usize = MAGIC.len() + 8;
const DEFAULT_LIMIT: u64 = 1 << 30;
const EXTENSION: &str = "kernel";
/// What a process that died while it wrote has left behind is deleted after this.
const ABANDONED: Duration = Duration::from_secs(3600);

impl DiskCache {
    /// The cache that the environment asks for, or none.
    pub fn from_environment() -> Option<DiskCache> {
        let number = |name| env::var(name).ok()?.trim().parse::<u64>().ok();
        if number("CUDA_CACHE_DISABLE").is_some_and(|value| value != 0) {
            return None;
        }
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = set("CUDA_CACHE_PATH")
            .or_else(|| set("XDG_CACHE_HOME"))
            .or_else(|| set("HOME").map(|home| home.join(".cache")))?;
        let limit = number("CUDA_CACHE_MAXSIZE").unwrap_or(DEFAULT_LIMIT);
        Some(DiskCache::new(base.join("anywarp"), limit))
    }

    /// A cache in `directory`, which is made when something is stored, of at most `limit` bytes.
    pub fn new(directory: PathBuf, limit: u64) -> DiskCache {
        DiskCache { directory, limit, known: Mutex::default() }
    }

    /// The content stored under `key`. A damaged entry is deleted and not there.
    pub fn load(&self, key: Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut file = fs::File::open(&path).ok()?;
        let owner = file.metadata().ok()?.uid();
        // SAFETY: a system call without arguments that always succeeds.
        if owner != 0 && owner != unsafe { libc::geteuid() } {
            return None;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let Some(content) = checked(&bytes) else {
            let _ = fs::remove_file(&path);
            return None;
        };
        let length = content.len();
        // The time of last use, for eviction; no harm if it cannot be set.
        let _ = file.set_modified(SystemTime::now());
        bytes.drain(..bytes.len() - length);
        Some(bytes)
    }

    /// Stores `content` under `key`. What fails leaves the cache as it was.
    pub fn store(&self, key: Key, content: &[u8]) {
        if (content.len() + HEADER) as u64 > self.limit {
            return;
        }
        if self.write(key, content).is_none() {
            return;
        }
        let stored = (content.len() + HEADER) as u64;
        let mut known = locked(&self.known);
        match &mut *known {
            Some((total, since)) if *since + stored < self.limit / LOOK_AGAIN => {
                *since += stored;
                if *total + *since > self.limit {
                    *known = self.evict().map(|total| (total, 0));
                }
            }
            _ => *known = self.evict().map(|total| (total, 0)),
        }
    }

    fn write(&self, key: Key, content: &[u8]) -> Option<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory).ok()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = self.directory.join(format!("{}-{number}.tmp", std::process::id()));
        let written = fs::File::create_new(&temporary).and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.write_all(&XxHash3_64::oneshot(content).to_le_bytes())?;
            file.write_all(content)
        });
        let renamed = written.and_then(|()| fs::rename(&temporary, self.path(key)));
        if renamed.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        renamed.ok()
    }

    /// Deletes the entries unused for longest until a quarter of the limit is free, if it is exceeded. Answers the size of what
    /// is there then, if that can be found out.
    fn evict(&self) -> Option<u64> {
        let directory = fs::read_dir(&self.directory).ok()?;
        let now = SystemTime::now();
        let mut entries = Vec::new();
        for file in directory.flatten() {
            let path = file.path();
            let Ok(metadata) = file.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some(EXTENSION) => entries.push((used, metadata.len(), path)),
                Some("tmp") if now.duration_since(used).is_ok_and(|age| age > ABANDONED) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        if total <= self.limit {
            return Some(total);
        }
        entries.sort();
        for (_, size, path) in entries {
            if total <= self.limit / 4 * 3 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
        Some(total)
    }

    fn path(&self, key: Key) -> PathBuf {
        self.directory.join(format!("{:032x}.{EXTENSION}", key.0))
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// The content of a file that is whole.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (sum, content) = rest.split_first_chunk::<8>()?;
    (magic == MAGIC && u64::from_le_bytes(*sum) == XxHash3_64::oneshot(content)).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of the test's own, deleted in the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = env::temp_dir().join(format!("anywarp-cache-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn key(text: &str) -> Key {
        Key::of(&[text.as_bytes()])
    }

    fn files(directory: &Directory) -> Vec<PathBuf> {
        fs::read_dir(&directory.0).unwrap().map(|file| file.unwrap().path()).collect()
    }

    #[test]
    fn keys_tell_parts_apart() {
        assert_ne!(Key::of(&[b"ab", b"c"]), Key::of(&[b"a", b"bc"]));
        assert_ne!(Key::of(&[b"ab"]), Key::of(&[b"ab", b""]));
        assert_eq!(Key::of(&[b"ab", b"c"]), Key::of(&[b"ab", b"c"]));
    }

    #[test]
    fn what_is_stored_is_found() {
        let directory = Directory::new("found");
        let cache = DiskCache::new(directory.0.join("below"), 1 << 20);
        assert_eq!(cache.load(key("a")), None);
        cache.store(key("a"), b"content");
        cache.store(key("b"), b"");
        assert_eq!(cache.load(key("a")).as_deref(), Some(&b"content"[..]));
        assert_eq!(cache.load(key("b")).as_deref(), Some(&b""[..]));
        assert_eq!(cache.load(key("c")), None);
    }

    #[test]
    fn a_damaged_entry_is_deleted() {
        let directory = Directory::new("damaged");
        let cache = DiskCache::new(directory.0.clone(), 1 << 20);
        for damage in 0..3 {
            cache.store(key("a"), b"content");
            let path = files(&directory).remove(0);
            let mut bytes = fs::read(&path).unwrap();
            match damage {
                0 => *bytes.last_mut().unwrap() ^= 1,
                1 => bytes.truncate(5),
                _ => bytes.push(0),
            }
            fs::write(&path, bytes).unwrap();
            assert_eq!(cache.load(key("a")), None);
            assert!(files(&directory).is_empty());
        }
    }

    #[test]
    fn the_longest_unused_go_first() {
        let directory = Directory::new("evicted");
        let cache = DiskCache::new(directory.0.clone(), 4000);
        let names: Vec<String> = (0..4).map(|number| number.to_string()).collect();
        for (age, name) in names.iter().enumerate() {
            cache.store(key(name), &[0; 900]);
            let file = fs::File::open(cache.path(key(name))).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(1000 - age as u64 * 100)).unwrap();
        }
        assert!(cache.load(key("0")).is_some(), "and now it is the youngest");
        cache.store(key("new"), &[0; 900]);
        let found: Vec<bool> = names.iter().map(|name| cache.load(key(name)).is_some()).collect();
        assert_eq!(found, [true, false, false, true]);
        assert!(cache.load(key("new")).is_some());
    }

    #[test]
    fn the_directory_stays_within_its_limit_however_many_write_to_it() {
        let directory = Directory::new("bounded");
        // Several processes, of which each counts what it stores itself.
        let caches: Vec<DiskCache> = (0..3).map(|_| DiskCache::new(directory.0.clone(), 100_000)).collect();
        for number in 0..300 {
            let content = vec![0; 984];
            caches[number % 3].store(key(&number.to_string()), &content);
            let total: u64 = files(&directory).iter().map(|file| file.metadata().unwrap().len()).sum();
            // Each of the others may have stored a 64th of the limit since it last looked, and one entry.
            assert!(total <= 100_000 + 3 * (100_000 / LOOK_AGAIN + 1000), "{total} bytes after {number}");
        }
    }

    #[test]
    fn what_exceeds_the_limit_is_not_stored() {
        let directory = Directory::new("large");
        let cache = DiskCache::new(directory.0.clone(), 100);
        cache.store(key("a"), &[0; 100]);
        assert_eq!(cache.load(key("a")), None);
    }

    #[test]
    fn many_writers_of_one_entry_agree() {
        let directory = Directory::new("threads");
        let cache = DiskCache::new(directory.0.clone(), 1 << 20);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        cache.store(key("a"), &[7; 5000]);
                        if let Some(content) = cache.load(key("a")) {
                            assert_eq!(content, [7; 5000]);
                        }
                    }
                });
            }
        });
        assert_eq!(files(&directory).len(), 1);
    }
}
