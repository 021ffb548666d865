//! Processes of `circuit run`, and the files that they need.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A folder of one test, removed at its end, with certificates of alice and bob.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("coterie-circuit-run-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let folder = Folder(path);
        folder.certificate("alice");
        folder.certificate("bob");
        folder
    }

    pub fn certificate(&self, name: &str) {
        let made = circuit(&["certificate", self.0.to_str().unwrap(), "--name", name]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// A party that knows another.
    pub fn party(&self, program: &str, part: &str, name: &str, peer: &str) -> Command {
        let (certificate, key, peer) = (format!("{name}.pem"), format!("{name}.key"), format!("{peer}.pem"));
        let mut command = circuit(&["run", program, "--party", part]);
        command.args(["--certificate", &self.path(&certificate), "--key", &self.path(&key)]);
        command.args(["--peer", &self.path(&peer), "--wait", "60"]);
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The command with these arguments and nothing to read.
pub fn circuit(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_circuit"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A process, killed if the test ends before it.
pub struct Running {
    pub child: Child,
    errors: BufReader<ChildStderr>,
    heard: String,
}

pub struct Ended {
    pub status: i32,
    pub output: String,
    pub errors: String,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Running { child, errors, heard: String::new() }
    }

    /// Starts a party that listens, and gives its address.
    pub fn listen(command: &mut Command) -> (Running, String) {
        let mut running = Running::start(command.args(["--listen", "127.0.0.1:0"]));
        let line = running.until("listening on ");
        let address = line.trim().strip_prefix("listening on ").unwrap().to_string();
        (running, address)
    }

    /// The next line on the standard error stream that has this in it.
    pub fn until(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.errors.read_line(&mut line).unwrap(), 0, "no {part:?} in {}", self.heard);
            self.heard.push_str(&line);
            if line.contains(part) {
                return line;
            }
        }
    }

    pub fn end(mut self) -> Ended {
        self.errors.read_to_string(&mut self.heard).unwrap();
        let mut output = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        let status = self.child.wait().unwrap().code().expect("no signal");
        Ended { status, output, errors: std::mem::take(&mut self.heard) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
