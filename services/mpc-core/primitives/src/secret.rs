//! The wrapper that marks a value as secret.

use zeroize::Zeroize;

/// A value that is wiped when dropped and that cannot be copied, cloned, printed, serialised or compared by accident.
///
/// Reading goes through [`Secret::expose`], so that every place that touches a secret is found by searching for it.
#[must_use]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes ownership; the caller must not keep another copy.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Reads the secret. The reference must not outlive the computation that needs it.
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// Changes the secret in place.
    pub fn expose_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Zeroize + Default> Secret<T> {
    /// Gives the value up to the caller, who becomes responsible for wiping it.
    pub fn into_inner(mut self) -> T {
        core::mem::take(&mut self.0)
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records its wiping, since memory must not be read after a drop.
    struct Probe<'a>(&'a core::cell::Cell<bool>);

    impl Zeroize for Probe<'_> {
        fn zeroize(&mut self) {
            self.0.set(true);
        }
    }

    #[test]
    fn drop_wipes() {
        let wiped = core::cell::Cell::new(false);
        let secret = Secret::new(Probe(&wiped));
        assert!(!wiped.get());
        drop(secret);
        assert!(wiped.get());
    }

    #[test]
    fn into_inner_leaves_nothing_behind() {
        let secret = Secret::new(vec![1u8, 2, 3]);
        assert_eq!(secret.into_inner(), vec![1, 2, 3]);
    }
}
