//! Where what was computed from secrets becomes public.
//!
//! The functions do nothing, except with feature `memcheck` under valgrind: there secrets are memory that is marked
//! undefined, so that a branch or an address that depends on one is reported, and [`publish`] ends that where a
//! protocol publishes a value or a check result. Every call says what the peer or the network learns anyway.

/// Says that `value` is public from here on: only the memory of the value itself, not what it points to.
#[inline(always)]
pub fn publish<T: ?Sized>(value: &T) {
    #[cfg(feature = "memcheck")]
    memcheck::make_defined(value);
    #[cfg(not(feature = "memcheck"))]
    let _ = value;
}

/// The same for what is passed on, such as the result of a check.
#[inline(always)]
#[must_use]
pub fn published<T: Copy>(value: T) -> T {
    publish(&value);
    value
}

/// The same for bytes elsewhere.
#[inline(always)]
#[must_use]
pub fn published_bytes(bytes: &[u8]) -> &[u8] {
    publish(bytes);
    bytes
}

/// Valgrind's client requests: instructions without effect on a processor, which valgrind knows.
#[cfg(feature = "memcheck")]
#[allow(unsafe_code, reason = "a client request is a sequence of instructions")]
pub mod memcheck {
    const RUNNING_ON_VALGRIND: usize = 0x1001;
    const COUNT_ERRORS: usize = 0x1201;
    const MAKE_UNDEFINED: usize = 0x4d43_0001;
    const MAKE_DEFINED: usize = 0x4d43_0002;

    /// valgrind.h: the preamble, then the instruction that asks, with the address of request and arguments.
    #[inline(always)]
    fn request(code: usize, address: usize, length: usize) -> usize {
        let arguments = [code, address, length, 0, 0, 0];
        let mut result = 0usize;
        // SAFETY: rotations by 64 bits in all and an exchange of a register with itself change nothing; valgrind reads
        // `arguments`, and changes what it knows of the given memory, not the memory.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!(
                "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
                in("rax") arguments.as_ptr(), inout("rdx") result,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!(
                "ror x12, x12, #3", "ror x12, x12, #13", "ror x12, x12, #51", "ror x12, x12, #61", "orr x10, x10, x10",
                in("x4") arguments.as_ptr(), inout("x3") result,
            );
        }
        result
    }

    /// Whether valgrind runs this process.
    #[must_use]
    pub fn is_here() -> bool {
        request(RUNNING_ON_VALGRIND, 0, 0) != 0
    }

    /// The number of errors that valgrind has reported so far, repetitions included.
    #[must_use]
    pub fn errors() -> usize {
        request(COUNT_ERRORS, 0, 0)
    }

    /// Marks `value` as secret.
    #[inline(always)]
    pub fn make_undefined<T: ?Sized>(value: &mut T) {
        request(MAKE_UNDEFINED, core::ptr::from_mut(value).cast::<u8>() as usize, size_of_val(value));
    }

    /// Marks `value` as public.
    #[inline(always)]
    pub fn make_defined<T: ?Sized>(value: &T) {
        request(MAKE_DEFINED, core::ptr::from_ref(value).cast::<u8>() as usize, size_of_val(value));
    }
}
