//! `circuit run`: two processes over the loopback interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod processes;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use circuits::compile::Limits;
use circuits::notation::{Notation, TestLine, number, show};
use circuits::program::Program;
use circuits::testing::{Clear, Engine as _};
use processes::{Folder, Running, circuit};

const RICHER: &str = "package main

type Evaluator struct {
\tmoney int64
\tnote  []byte
}

func main(garbler int64, evaluator Evaluator) (richer bool, sum int64, note []byte) {
\treturn garbler > evaluator.money, garbler + evaluator.money, evaluator.note
}
";

/// Some 10^10 AND gates: neither side comes to its end.
const LONG: &str = "package main

// @SemiHonest
func main(a, b uint64) uint64 {
\tfor i := 0; i < 1000000; i++ {
\t\ta = a*b + 1
\t}
\treturn a
}
";

/// The program's result in the clear, as `run` prints it.
fn expected(program: &str, garbler: &str, evaluator: &[&str]) -> String {
    let program = Program::from_text("richer.mpcl", program, &[]).unwrap();
    let written = |text: &&str| {
        let notation = Notation { first_is_lowest: text.starts_with("0x"), ..Notation::default() };
        number(text, notation).unwrap()
    };
    let inputs = vec![vec![written(&garbler)], evaluator.iter().map(written).collect()];
    let line = TestLine { text: String::new(), inputs, outputs: Vec::new() };
    let (bits, interface) = Clear.run(&program, &line, Limits::default()).unwrap();
    let mut rest = bits.as_slice();
    let mut text = String::new();
    for port in &interface.outputs {
        let (own, others) = rest.split_at(port.ty.size().unwrap());
        text.push_str(&format!("{} {}\n", port.name, show(&port.ty, own)));
        rest = others;
    }
    text
}

#[test]
fn two_processes_compute_what_the_interpreter_does_and_print_no_input() {
    let folder = Folder::new("computes");
    let streamed = RICHER.replace("func main", "// @SemiHonest\nfunc main");
    for (text, engine) in [(RICHER, "authenticated: "), (streamed.as_str(), "semi-honest, streamed: ")] {
        let program = folder.write("richer.mpcl", text);
        let (money, other) = ("7310459921", "-6120884417");
        let input = format!("@{}", folder.write("input", &format!("{money}\n")));
        let mut garbler = folder.party(&program, "garbler", "alice", "bob");
        let (garbler, address) = Running::listen(garbler.args(["--input", &input]));
        let mut evaluator = folder.party(&program, "evaluator", "bob", "alice");
        evaluator.args(["--connect", &address, "--input", "-"]).stdin(Stdio::piped());
        let mut evaluator = Running::start(&mut evaluator);
        let mut pipe = evaluator.child.stdin.take().unwrap();
        pipe.write_all(format!("{other},0x00c0ffee\n").as_bytes()).unwrap();
        drop(pipe);
        let result = expected(text, money, &[other, "0x00c0ffee"]);
        assert_eq!(result, "richer true\nsum 1189575504\nnote 00c0ffee\n");
        for ended in [garbler.end(), evaluator.end()] {
            assert_eq!((ended.status, ended.output.as_str()), (0, result.as_str()), "{}", ended.errors);
            assert!(ended.errors.contains(engine), "{}", ended.errors);
            // The operator hears of the weaker engine before the peer is met.
            let warned = ended.errors.split("met the peer").next().unwrap().contains("@SemiHonest");
            assert_eq!(warned, engine.starts_with("semi-honest"), "{}", ended.errors);
            assert!(!ended.errors.contains(money) && !ended.errors.contains(&other[1..]), "{}", ended.errors);
        }
    }
}

#[test]
fn only_the_known_peer_is_heard_and_the_run_goes_on_with_it() {
    let folder = Folder::new("strangers");
    folder.certificate("eve");
    let program = folder.write("richer.mpcl", RICHER);
    let mut garbler = folder.party(&program, "garbler", "alice", "bob");
    let (mut garbler, address) = Running::listen(garbler.args(["--input", "5"]));
    // Bytes that are no TLS, a connection that ends at once, and the start of a record that never comes.
    TcpStream::connect(&address).unwrap().write_all(&[b'x'; 4000]).unwrap();
    garbler.until("refused ");
    drop(TcpStream::connect(&address).unwrap());
    garbler.until("refused ");
    TcpStream::connect(&address).unwrap().write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap();
    garbler.until("refused ");
    let join = |name: &str, peer: &str| {
        let mut command = folder.party(&program, "evaluator", name, peer);
        Running::start(command.args(["--connect", &address, "--input", "4,_"]))
    };
    let eve = join("eve", "alice").end();
    assert!(eve.status == 4 && eve.errors.contains("refuses this party's certificate"), "{}", eve.errors);
    garbler.until("another certificate than that of --peer");
    let confused = join("bob", "eve").end();
    assert!(
        confused.status == 4 && confused.errors.contains("another certificate than"),
        "{}",
        confused.errors
    );
    garbler.until("refused ");
    assert_eq!(join("bob", "alice").end().status, 0);
    let ended = garbler.end();
    assert_eq!((ended.status, ended.output.as_str()), (0, "richer true\nsum 9\nnote\n"), "{}", ended.errors);
}

/// Whether the other side closes a connection before it is silent for a minute.
fn closes(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    match stream.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(e) => e.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn callers_that_stall_keep_no_peer_waiting_and_are_closed_when_it_comes() {
    let folder = Folder::new("stall");
    let program = folder.write("long.mpcl", LONG);
    let mut garbler = folder.party(&program, "garbler", "alice", "bob");
    let (mut garbler, address) = Running::listen(garbler.args(["--input", "5"]));
    // Nothing, and the start of a record that never comes.
    let stalled = [&[][..], &[0x16, 3, 1, 2, 0, 1]].map(|words| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(words).unwrap();
        stream
    });
    let mut evaluator = folder.party(&program, "evaluator", "bob", "alice");
    let mut evaluator = Running::start(evaluator.args(["--connect", &address, "--input", "3"]));
    garbler.until("met the peer");
    evaluator.until("met the peer");
    assert!(stalled.iter().all(closes));
    // The run was still going on, and it ends as soon as the peer is away.
    drop(evaluator);
    let ended = garbler.end();
    assert_eq!(ended.status, 3, "{}", ended.errors);
    assert!(!ended.errors.contains("refused "), "{}", ended.errors);
}

#[test]
fn the_caller_that_stalls_longest_gives_way_when_there_are_too_many() {
    let folder = Folder::new("crowd");
    let program = folder.write("richer.mpcl", RICHER);
    let mut garbler = folder.party(&program, "garbler", "alice", "bob");
    let (mut garbler, address) = Running::listen(garbler.args(["--input", "5"]));
    let crowd: Vec<TcpStream> = (0..33).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let first = crowd[0].local_addr().unwrap();
    let refused = garbler.until("refused ");
    assert!(
        refused.contains(&format!("{first}: it was silent in the handshake while others came")),
        "{refused}"
    );
    assert!(closes(&crowd[0]));
    let mut evaluator = folder.party(&program, "evaluator", "bob", "alice");
    let evaluator = Running::start(evaluator.args(["--connect", &address, "--input", "4,_"]));
    for ended in [garbler.end(), evaluator.end()] {
        assert_eq!(
            (ended.status, ended.output.as_str()),
            (0, "richer true\nsum 9\nnote\n"),
            "{}",
            ended.errors
        );
    }
}

#[test]
fn different_programs_and_equal_parts_are_refused_by_both() {
    let folder = Folder::new("differ");
    let program = folder.write("richer.mpcl", RICHER);
    let poorer = folder.write("poorer.mpcl", &RICHER.replace("garbler >", "garbler <"));
    for (other, part, input, word) in
        [(&poorer, "evaluator", "4,_", "another program"), (&program, "garbler", "4", "the same part")]
    {
        let mut first = folder.party(&program, "garbler", "alice", "bob");
        let (first, address) = Running::listen(first.args(["--input", "5"]));
        let mut second = folder.party(other, part, "bob", "alice");
        let second = Running::start(second.args(["--connect", &address, "--input", input]));
        for ended in [first.end(), second.end()] {
            assert_eq!((ended.status, ended.output.as_str()), (4, ""), "{}", ended.errors);
            assert!(ended.errors.contains(word), "{}", ended.errors);
        }
    }
}

#[test]
fn a_peer_that_dies_ends_the_other() {
    let folder = Folder::new("dies");
    let program = folder.write("long.mpcl", LONG);
    for dies in [0, 1] {
        let mut garbler = folder.party(&program, "garbler", "alice", "bob");
        let (garbler, address) = Running::listen(garbler.args(["--input", "5"]));
        let mut evaluator = folder.party(&program, "evaluator", "bob", "alice");
        let evaluator = Running::start(evaluator.args(["--connect", &address, "--input", "3"]));
        let mut parties = [garbler, evaluator];
        parties.iter_mut().for_each(|party| {
            party.until("met the peer");
        });
        let [garbler, evaluator] = parties;
        let (mut dead, survivor) = if dies == 0 { (garbler, evaluator) } else { (evaluator, garbler) };
        dead.child.kill().unwrap();
        let ended = survivor.end();
        assert_eq!((ended.status, ended.output.as_str()), (3, ""), "{}", ended.errors);
        assert!(ended.errors.contains("the peer went away"), "{}", ended.errors);
    }
}

#[test]
fn a_peer_that_speaks_something_else_or_nothing_is_told_apart() {
    let folder = Folder::new("garbage");
    let program = folder.write("richer.mpcl", RICHER);
    let connect = |address: &str, wait: &str| {
        let mut command = folder.party(&program, "garbler", "alice", "bob");
        Running::start(command.args(["--connect", address, "--input", "5", "--wait", wait]))
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let garbage = connect(&address, "60");
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    let ended = garbage.end();
    assert!(ended.status == 4 && ended.errors.contains("does not speak TLS 1.3"), "{}", ended.errors);

    let silent = connect(&address, "1");
    let _open = listener.accept().unwrap();
    let ended = silent.end();
    assert!(ended.status == 3 && ended.errors.contains("said nothing for too long"), "{}", ended.errors);

    drop(listener);
    let ended = connect(&address, "1").end();
    assert!(ended.status == 3 && ended.errors.contains("no peer listens on"), "{}", ended.errors);

    let mut nobody = folder.party(&program, "garbler", "alice", "bob");
    let (nobody, _) = Running::listen(nobody.args(["--input", "5", "--wait", "1"]));
    let ended = nobody.end();
    assert!(ended.status == 3 && ended.errors.contains("no peer came in 1 s"), "{}", ended.errors);
}

#[test]
fn own_mistakes_are_found_before_the_peer_is_met_and_repeat_no_value() {
    let folder = Folder::new("mistakes");
    let program = folder.write("richer.mpcl", RICHER);
    let open = folder.write("open.key", &std::fs::read_to_string(folder.path("alice.key")).unwrap());
    let (bob, key, pem) = (folder.path("bob.key"), folder.path("alice.key"), folder.path("alice.pem"));
    for (arguments, word) in [
        (&["--input", "4711x"][..], "value 1 of the input cannot be read"),
        (&["--input", "99999999999999994711"], "value 1 of the input does not fit in int64"),
        (&["--input", "4711,4711"], "has 1 values, and 2 are given"),
        (&[], "has 1 values, and 0 are given"),
        (&["--input", "@/nowhere/4711"], "cannot read the input"),
        (&["--input", "1", "--key", &open], "chmod 600"),
        (&["--input", "1", "--key", &bob], "cannot be used with the certificate"),
        (&["--input", "1", "--peer", &pem], "are the same"),
        (&["--input", "1", "--peer", &key], "cannot read"),
        (&["--input", "1", "--input", "2"], "given twice"),
        (&["--input", "1", "--connect", "127.0.0.1:1"], "--listen or --connect once"),
        (&["--input=4711"], "--input needs a value"),
        (&["--input=4711", "--wait"], "run has no option --input:"),
        (&["-4711", "--wait"], "run has no option of that form"),
        (&["--wait", "0"], "--wait is a number of seconds"),
    ] {
        let mut command = circuit(&["run", &program, "--party", "garbler", "--listen", "127.0.0.1:0"]);
        for (option, file) in [("--certificate", &pem), ("--key", &key), ("--peer", &folder.path("bob.pem"))]
        {
            if !arguments.contains(&option) {
                command.args([option, file]);
            }
        }
        let ended = Running::start(command.args(arguments)).end();
        assert_eq!((ended.status, ended.output.as_str()), (1, ""), "{arguments:?} {}", ended.errors);
        assert!(ended.errors.contains(word), "{arguments:?} {}", ended.errors);
        assert!(!ended.errors.contains("listening"), "{arguments:?} {}", ended.errors);
        assert!(!ended.errors.contains("4711") || ended.errors.contains("/nowhere/"), "{}", ended.errors);
    }
}

#[test]
fn a_program_too_large_for_the_engine_says_what_would_run_it() {
    let folder = Folder::new("large");
    let program = folder.write(
        "large.mpcl",
        "package main\n\nfunc main(a, b uint64) uint64 {\n\tfor i := 0; i < 2000; i++ {\n\t\ta = a*b + 1\n\t}\n\treturn a\n}\n",
    );
    let mut garbler = folder.party(&program, "garbler", "alice", "bob");
    let (garbler, address) = Running::listen(garbler.args(["--input", "5"]));
    let mut evaluator = folder.party(&program, "evaluator", "bob", "alice");
    let evaluator = Running::start(evaluator.args(["--connect", &address, "--input", "3"]));
    for ended in [garbler.end(), evaluator.end()] {
        assert!(ended.status == 1 && ended.errors.contains("@SemiHonest"), "{}", ended.errors);
    }
}

#[test]
fn certificates_are_not_overwritten_and_names_stay_in_their_folder() {
    let folder = Folder::new("certificates");
    let place = folder.0.to_str().unwrap();
    let before = std::fs::read(folder.path("alice.key")).unwrap();
    for (name, word) in [("alice", "cannot write"), ("../alice", "--name has"), ("", "--name has")] {
        let ended = Running::start(&mut circuit(&["certificate", place, "--name", name])).end();
        assert!(ended.status == 1 && ended.errors.contains(word), "{name}: {}", ended.errors);
    }
    assert_eq!(std::fs::read(folder.path("alice.key")).unwrap(), before);
}
