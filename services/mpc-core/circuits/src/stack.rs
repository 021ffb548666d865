//! Room for recursion: the compiler evaluates nested calls by recursion, deeper than a usual thread's stack allows.

/// Bytes of stack for a thread that compiles. Only what is touched takes memory.
pub const STACK: usize = 1 << 30;

/// Runs `body` on a thread with a large stack; `None` if there is no thread or it stopped by a panic.
pub fn with_stack<T: Send>(body: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body).ok()?.join().ok()
    })
}
