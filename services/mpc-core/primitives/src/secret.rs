//! The wrapper that marks a value as secret.

#![allow(unsafe_code, reason = "a move leaves its source behind, which only raw memory can wipe")]

use core::mem::MaybeUninit;

use zeroize::Zeroize;

/// A value that is wiped when dropped and that cannot be copied, cloned, printed, serialised or compared by accident.
///
/// The value has one place in memory, which never moves: moving the wrapper moves a pointer. So a state machine that
/// goes from one state to the next leaves no copy of its secrets in the old one.
///
/// Reading goes through [`Secret::expose`], so that every place that touches a secret is found by searching for it.
#[must_use]
pub struct Secret<T: Zeroize> {
    value: Box<T>,
    #[cfg(feature = "witness")]
    origin: &'static core::panic::Location<'static>,
}

impl<T: Zeroize> Secret<T> {
    /// Takes ownership, and wipes the place where the argument was; the caller must not keep another copy.
    #[cfg_attr(feature = "witness", track_caller)]
    pub fn new(value: T) -> Self {
        let mut argument = MaybeUninit::new(value);
        let mut place = Box::new_uninit();
        // SAFETY: both are valid for one T and do not overlap. The argument is a T no longer once its bytes are the
        // box's: it is only wiped, and as MaybeUninit it is not dropped.
        let boxed = unsafe {
            core::ptr::copy_nonoverlapping(argument.as_ptr(), place.as_mut_ptr(), 1);
            argument.zeroize();
            place.assume_init()
        };
        Self {
            #[cfg(feature = "witness")]
            origin: crate::witness::record(&*boxed, core::panic::Location::caller()),
            value: boxed,
        }
    }

    /// Reads the secret. The reference must not outlive the computation that needs it.
    pub fn expose(&self) -> &T {
        &self.value
    }

    /// Changes the secret in place.
    pub fn expose_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl Secret<Vec<u8>> {
    /// Gives the bytes up to the caller, who becomes responsible for wiping them. They do not move.
    pub fn into_bytes(mut self) -> Vec<u8> {
        core::mem::take(&mut self.value)
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        #[cfg(feature = "witness")]
        crate::witness::record(&*self.value, self.origin);
        self.value.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records its wiping, since memory must not be read after a drop.
    struct Probe<'a>(&'a core::cell::Cell<u32>);

    impl Zeroize for Probe<'_> {
        fn zeroize(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn drop_wipes_once() {
        let wiped = core::cell::Cell::new(0);
        let secret = Secret::new(Probe(&wiped));
        assert_eq!(wiped.get(), 0);
        drop(secret);
        assert_eq!(wiped.get(), 1);
    }

    #[test]
    fn a_move_leaves_the_value_where_it_is() {
        let secret = Secret::new([7u8; 32]);
        let place = secret.expose().as_ptr();
        let moved = Some(Box::new(secret));
        assert_eq!(moved.map(|secret| secret.expose().as_ptr()), Some(place));
    }

    #[test]
    fn bytes_are_given_up_in_place() {
        let secret = Secret::new(vec![1u8, 2, 3]);
        let place = secret.expose().as_ptr();
        let bytes = secret.into_bytes();
        assert_eq!((bytes.as_slice(), bytes.as_ptr()), (&[1, 2, 3][..], place));
    }
}
