//! How a run ends without a result: advice for the operator, and the command's exit status.

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use circuits::authenticated::Abort;
use circuits::garble::RunError;
use rustls::{AlertDescription, CertificateError};

/// Why there is no result. Each text says what to do.
#[derive(Debug)]
pub enum Failure {
    /// Arguments, files, the input or the program: this party mends it.
    Own(String),
    /// The peer is not there, or no longer.
    Gone(String),
    /// The peer is another one, or runs another program.
    Other(String),
    /// The peer does not follow the protocol.
    Deviates(String),
}

impl Failure {
    pub fn text(&self) -> &str {
        match self {
            Failure::Own(text) | Failure::Gone(text) | Failure::Other(text) | Failure::Deviates(text) => text,
        }
    }

    /// The exit status: see `circuit help`. 2 is a fault of the command itself.
    pub fn status(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Own(_) => 1,
            Failure::Gone(_) => 3,
            Failure::Other(_) => 4,
            Failure::Deviates(_) => 5,
        })
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Failure::Own(text)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        if let Some(tls) = e.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return of_tls(tls);
        }
        match e.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Failure::Gone(
                "the peer said nothing for too long: look at its side, then run both again, with a longer --wait if it needs it"
                    .into(),
            ),
            ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe => {
                Failure::Gone("the peer went away: look at its side, then run both again".into())
            }
            _ => Failure::Gone(format!("the connection to the peer broke: {e}")),
        }
    }
}

fn of_tls(e: &rustls::Error) -> Failure {
    match e {
        rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            Failure::Other(
                "the peer shows another certificate than that of --peer: ask it for its own".into(),
            )
        }
        rustls::Error::AlertReceived(AlertDescription::AccessDenied) => Failure::Other(
            "the peer refuses this party's certificate: give it the file of --certificate as its --peer"
                .into(),
        ),
        rustls::Error::NoCertificatesPresented => {
            Failure::Other("the peer shows no certificate: it must run this command".into())
        }
        e => Failure::Other(format!("the peer does not speak TLS 1.3 as this command does: {e}")),
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        match e {
            RunError::Channel(e) => e.into(),
            RunError::Program(text) => Failure::Own(text),
            RunError::Peer(_) => Failure::Deviates(deviates(&e)),
        }
    }
}

impl From<Abort> for Failure {
    fn from(abort: Abort) -> Self {
        match abort {
            Abort::Channel(e) => e.into(),
            Abort::Disagreement => Failure::Other(
                "the peer compiled another circuit from the same program: install the same build on both sides".into(),
            ),
            abort if abort.excludes_peer() => Failure::Deviates(deviates(&abort)),
            abort => Failure::Own(abort.to_string()),
        }
    }
}

fn deviates(what: &dyn std::fmt::Display) -> String {
    format!("{what}: do not run anything with it until it is known why")
}
