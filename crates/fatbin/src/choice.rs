use crate::container::{Container, Entry, EntryKind};
use crate::error::FatbinError;
use crate::objects;

/// The architecture that images are chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    sm: u32,
}

impl Target {
    /// The device of compute capability `sm / 10`.`sm % 10`.
    pub fn new(sm: u32) -> Self {
        Self { sm }
    }

    /// How well PTX of an entry suits the device; `None` if it cannot run there. Larger is better.
    ///
    /// PTX runs on its own and every later architecture. Arch-specific text is for one architecture alone, family
    /// text for the later members of the family, those that share its tens. Of one number, the more specific text
    /// is the better.
    fn rank(self, entry: &Entry) -> Option<(u32, u8)> {
        let usable = if entry.is_arch_specific() {
            entry.sm == self.sm
        } else if entry.is_family() {
            entry.sm <= self.sm && entry.sm / 10 == self.sm / 10
        } else {
            entry.sm <= self.sm
        };
        let specificity = if entry.is_arch_specific() { 2 } else { u8::from(entry.is_family()) };
        usable.then_some((entry.sm, specificity))
    }
}

impl<'a> Container<'a> {
    /// The PTX entry that suits the device best: the highest architecture that is not above it. `None` if no PTX
    /// in the container can run there.
    pub fn choose_ptx(&self, target: Target) -> Result<Option<Entry<'a>>, FatbinError> {
        let mut best: Option<((u32, u8), Entry<'a>)> = None;
        for entry in self.entries() {
            let entry = entry?;
            if entry.kind != EntryKind::Ptx {
                continue;
            }
            let Some(rank) = target.rank(&entry) else { continue };
            // The first of equals stays.
            if best.as_ref().is_none_or(|(best_rank, _)| rank > *best_rank) {
                best = Some((rank, entry));
            }
        }
        Ok(best.map(|(_, entry)| entry))
    }
}

impl Container<'_> {
    /// The PTX that the machine code in the container carries: that for the highest architecture that is not above the target, or else for the
    /// lowest above it. Empty if it carries none.
    fn sources(&self, target: Target) -> Result<Vec<String>, FatbinError> {
        let mut best: Option<((bool, u32), Entry<'_>)> = None;
        for entry in self.entries() {
            let entry = entry?;
            let rank = (entry.sm > target.sm, entry.sm.abs_diff(target.sm));
            if entry.kind == EntryKind::Elf && best.as_ref().is_none_or(|(known, _)| rank < *known) {
                best = Some((rank, entry));
            }
        }
        best.map_or(Ok(Vec::new()), |(_, entry)| objects::sources(&entry.payload()?))
    }
}

/// What a wrapper leads to.
#[derive(Clone, Debug)]
pub enum Fatbin<'a> {
    /// One container with the whole program.
    Whole(Container<'a>),
    /// A program whose units are to be linked.
    Linked {
        /// What the static linker made; without machine code it is usually empty.
        whole: Option<Container<'a>>,
        /// One container for each unit.
        units: Vec<Container<'a>>,
    },
}

impl<'a> Fatbin<'a> {
    /// The PTX texts that together are the program on the device; more than one are to be linked. Empty if there
    /// is nothing that the device can run.
    ///
    /// Units without usable PTX are left out: they may be libraries of which the program uses nothing, and if it
    /// does, the link names the missing symbol.
    pub fn choose_ptx(&self, target: Target) -> Result<Vec<Entry<'a>>, FatbinError> {
        match self {
            Self::Whole(container) => Ok(container.choose_ptx(target)?.into_iter().collect()),
            Self::Linked { whole, units } => {
                if let Some(container) = whole
                    && let Some(entry) = container.choose_ptx(target)?
                {
                    return Ok(vec![entry]);
                }
                units.iter().filter_map(|unit| unit.choose_ptx(target).transpose()).collect()
            }
        }
    }

    /// The PTX texts that its machine code carries: more than one are to be linked. Empty if there are none.
    pub fn sources(&self, target: Target) -> Result<Vec<String>, FatbinError> {
        match self {
            Self::Whole(container) => container.sources(target),
            Self::Linked { whole, units } => {
                let linked = whole.as_ref().map(|container| container.sources(target)).transpose()?;
                match linked.filter(|texts| !texts.is_empty()) {
                    Some(texts) => Ok(texts),
                    None => Ok(units
                        .iter()
                        .map(|unit| unit.sources(target))
                        .collect::<Result<Vec<_>, _>>()?
                        .concat()),
                }
            }
        }
    }

    /// The lowest architecture for which there is PTX that runs onward from it.
    pub fn oldest_ptx(&self) -> Result<Option<u32>, FatbinError> {
        let containers: Vec<&Container<'a>> = match self {
            Self::Whole(container) => vec![container],
            Self::Linked { whole, units } => whole.iter().chain(units).collect(),
        };
        let mut oldest = None;
        for entry in containers.into_iter().flat_map(Container::entries) {
            let entry = entry?;
            if entry.kind == EntryKind::Ptx && !entry.is_arch_specific() && !entry.is_family() {
                oldest = Some(oldest.map_or(entry.sm, |sm: u32| sm.min(entry.sm)));
            }
        }
        Ok(oldest)
    }
}
