//! Statements inside of statements, for those who make programs smaller.

/// A statement of a language.
pub trait Nested: Clone {
    /// The statements inside.
    fn lists(&self) -> Vec<&Vec<Self>>;

    /// Likewise, to be changed.
    fn lists_mut(&mut self) -> Vec<&mut Vec<Self>>;

    /// Something simpler with the same inside.
    fn simpler(&self) -> Option<Self>;
}

/// Statements in a list, and in those.
pub fn size<S: Nested>(list: &[S]) -> usize {
    list.iter().map(|statement| 1 + statement.lists().into_iter().map(|list| size(list)).sum::<usize>()).sum()
}

/// What `with` makes of a program by putting less in the place of a statement: nothing, all that is inside, what is in one of its first
/// `lists`, or something simpler.
pub fn smaller<S: Nested, P>(lists: usize, with: impl Fn(&dyn Fn(&S) -> Vec<S>) -> P) -> Vec<P> {
    let inside = |statement: &S| statement.lists().into_iter().flatten().cloned().collect();
    let mut all = vec![with(&|_| Vec::new()), with(&inside)];
    for index in 0..lists {
        all.push(with(&|statement| {
            statement.lists().get(index).map_or_else(|| vec![statement.clone()], |list| (*list).clone())
        }));
    }
    all.push(with(&|statement| vec![statement.simpler().unwrap_or_else(|| statement.clone())]));
    all
}

/// Puts something in the place of the `left`-th statement. Whether it was in this list.
pub fn replace<S: Nested>(list: &mut Vec<S>, left: &mut usize, change: &dyn Fn(&S) -> Vec<S>) -> bool {
    for index in 0..list.len() {
        if *left == 0 {
            let new = change(&list[index]);
            list.splice(index..=index, new);
            return true;
        }
        *left -= 1;
        if list[index].lists_mut().into_iter().any(|inner| replace(inner, left, change)) {
            return true;
        }
    }
    false
}
