//! The network of the latency lab: carries IP packets between network namespaces and lets each take as long as the
//! distance between their places says. The kernels the lab runs on have no netem.
//!
//! `delayer DEVICE NAMESPACE...` attaches to the TUN device of that name in each namespace; the first namespace is
//! place 1. Delays are set while it runs by lines `FROM TO MICROSECONDS` on standard input (`*` for every place), each
//! answered by `ok` or `refused: why`. It ends with its standard input.

mod queue;

use queue::{Delays, Underway};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Instant;

/// Largest IP packet.
const MAX_PACKET: usize = 65_535;
/// Packets read from one device before others have their turn.
const BATCH: usize = 64;
/// Real-time priority: a packet that is due must not wait for a service that computes.
const PRIORITY: i32 = 20;
/// `TUNSETIFF` of linux/if_tun.h.
const TUNSETIFF: libc::Ioctl = 0x4004_54ca;

/// `struct ifreq` as `TUNSETIFF` takes it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    padding: [u8; 22],
}

fn checked(result: libc::c_int, what: &str) -> io::Result<libc::c_int> {
    if result < 0 {
        let error = io::Error::last_os_error();
        return Err(io::Error::new(error.kind(), format!("{what}: {error}")));
    }
    Ok(result)
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: a plain system call on a descriptor that is open.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, "setns").map(|_| ())
}

/// Opens the device of a namespace; it can be read and written from outside it.
fn attach(namespace: &str, device: &str) -> io::Result<File> {
    let home = File::open("/proc/self/ns/net")?;
    enter(&File::open(format!("/run/netns/{namespace}"))?)?;
    let tun = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
    let attached = tun.and_then(|tun| {
        let mut request = InterfaceRequest {
            name: [0; libc::IFNAMSIZ],
            flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short,
            padding: [0; 22],
        };
        let name = device.as_bytes();
        if name.len() >= libc::IFNAMSIZ {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the device's name is too long"));
        }
        request.name[..name.len()].copy_from_slice(name);
        // SAFETY: the request has the size and form of struct ifreq and outlives the call.
        checked(unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETIFF, &request) }, "TUNSETIFF")?;
        Ok(tun)
    });
    enter(&home)?;
    attached
}

/// Asks for punctuality; without the right to it the lab is merely less exact.
fn be_punctual() {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: plain system calls; the parameters outlive the call.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) != 0
    };
    if refused {
        eprintln!("delayer: no real-time priority: {}", io::Error::last_os_error());
    }
}

/// Waits until a descriptor can be read or the instant has come.
fn wait(descriptors: &mut [libc::pollfd], until: Option<Instant>) -> io::Result<()> {
    let timeout = until.map(|due| {
        let left = due.saturating_duration_since(Instant::now());
        libc::timespec { tv_sec: left.as_secs() as libc::time_t, tv_nsec: left.subsec_nanos().into() }
    });
    let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: descriptors and timeout outlive the call; no signal mask.
    let result = unsafe {
        libc::ppoll(descriptors.as_mut_ptr(), descriptors.len() as libc::nfds_t, pointer, std::ptr::null())
    };
    match checked(result, "ppoll") {
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Standard input as far as it has come; complete lines change the delays.
struct Commands {
    /// Unbuffered: bytes that the library had read ahead would wake nobody.
    input: File,
    text: Vec<u8>,
}

impl Commands {
    /// Reads once; false at the end of input.
    fn take(&mut self, delays: &mut Delays) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        let count = self.input.read(&mut bytes)?;
        self.text.extend_from_slice(&bytes[..count]);
        while let Some(end) = self.text.iter().position(|b| *b == b'\n') {
            let line = String::from_utf8_lossy(&self.text[..end]).into_owned();
            self.text.drain(..=end);
            let answer = delays.set(&line).map_or_else(|why| format!("refused: {why}"), |()| "ok".to_owned());
            writeln!(io::stdout(), "{answer}")?;
        }
        Ok(count > 0)
    }
}

fn run(device: &str, namespaces: &[String]) -> io::Result<()> {
    let mut devices = Vec::new();
    for namespace in namespaces {
        let attached = attach(namespace, device);
        devices.push(attached.map_err(|e| io::Error::new(e.kind(), format!("namespace {namespace}: {e}")))?);
    }
    be_punctual();
    let readable = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut descriptors: Vec<_> = devices.iter().map(|d| readable(d.as_raw_fd())).collect();
    descriptors.push(readable(libc::STDIN_FILENO));
    let mut delays = Delays::none(devices.len());
    let mut underway = Underway::default();
    let mut commands = Commands { input: File::open("/dev/stdin")?, text: Vec::new() };
    let mut buffer = vec![0; MAX_PACKET];
    writeln!(io::stdout(), "ready")?;
    loop {
        wait(&mut descriptors, underway.next_due())?;
        for (mut device, descriptor) in devices.iter().zip(&descriptors) {
            if descriptor.revents == 0 {
                continue;
            }
            for _ in 0..BATCH {
                match device.read(&mut buffer) {
                    Ok(count) => {
                        let packet = &buffer[..count];
                        if let Some(route) = delays.route(packet) {
                            underway.send(Instant::now() + route.delay, route.to, packet.to_vec());
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        if descriptors.last().is_some_and(|d| d.revents != 0) && !commands.take(&mut delays)? {
            return Ok(());
        }
        while let Some((to, packet)) = underway.arrived(Instant::now()) {
            // A device that takes nothing loses the packet, as a network does.
            if let Err(error) = (&devices[to - 1]).write(&packet) {
                eprintln!("delayer: a packet to place {to} is lost: {error}");
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, namespaces @ ..] = &arguments[..] else {
        eprintln!("usage: delayer DEVICE NAMESPACE...");
        std::process::exit(2);
    };
    if let Err(error) = run(device, namespaces) {
        eprintln!("delayer: {error}");
        std::process::exit(1);
    }
}
