//! The committed header and `core.proto` say what the code says.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use abi::proto::Verdict;
use coterie_mpc as abi;
use engine::{AbortCause, Advice, Reject};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Text between `open` and the first `close` after it.
fn between<'a>(text: &'a str, open: &str, close: &str) -> &'a str {
    let start = text.find(open).unwrap_or_else(|| panic!("{open} is missing")) + open.len();
    let length = text[start..].find(close).unwrap();
    &text[start..start + length]
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_comments(header: &str) -> String {
    let mut code = String::new();
    let mut rest = header;
    while let Some(start) = rest.find("/*") {
        code.push_str(&rest[..start]);
        rest = &rest[start + rest[start..].find("*/").unwrap() + 2..];
    }
    code + rest
}

/// `mpc_code mpc_vault_open(mpc_view data_key32, mpc_vault **out)` for each declaration of the header.
fn declared() -> BTreeSet<String> {
    let code = without_comments(&read("include/coterie_mpc.h"));
    code.split(';')
        .map(squeeze)
        .filter_map(|statement| {
            let paren = statement.find('(')?;
            let start = statement[..paren].rfind(['}', '{']).map_or(0, |at| at + 1);
            Some(statement[start..].trim().to_owned())
        })
        .filter(|statement| statement.contains("mpc_") && !statement.starts_with("typedef"))
        .map(|statement| {
            // Preprocessor lines have no semicolon, so they stick to what follows them.
            let first = ["mpc_code mpc_", "int32_t mpc_", "void mpc_"];
            let at = first.iter().filter_map(|word| statement.find(word)).min().unwrap();
            statement[at..].to_owned()
        })
        .collect()
}

fn c_type(rust: &str) -> String {
    if let Some(target) = rust.strip_prefix("*mut ") {
        let inner = c_type(target);
        return if inner.ends_with('*') { format!("{inner}*") } else { format!("{inner} *") };
    }
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("const {} *", c_type(target));
    }
    match rust {
        "u32" => "uint32_t".to_owned(),
        "i32" => "int32_t".to_owned(),
        other => other.to_owned(),
    }
}

fn exported() -> BTreeSet<String> {
    let source = read("src/ffi.rs");
    source
        .split("#[unsafe(no_mangle)]")
        .skip(1)
        .map(|function| {
            let signature = squeeze(between(function, "extern \"C\" fn ", "{"));
            let (name, rest) = signature.split_once('(').unwrap();
            let (arguments, result) = rest.rsplit_once(')').unwrap();
            let result = result.trim().strip_prefix("-> ").map_or("void".to_owned(), |t| c_type(t.trim()));
            let arguments: Vec<String> = arguments
                .split(',')
                .filter(|argument| !argument.trim().is_empty())
                .map(|argument| {
                    let (name, kind) = argument.split_once(':').unwrap();
                    let kind = c_type(kind.trim());
                    let space = if kind.ends_with('*') { "" } else { " " };
                    format!("{kind}{space}{}", name.trim())
                })
                .collect();
            let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
            format!("{result} {name}({arguments})")
        })
        .collect()
}

#[test]
fn header_declares_what_is_exported() {
    assert_eq!(declared(), exported());
    assert_eq!(exported().len(), 18);
}

#[test]
fn header_constants_are_those_of_the_code() {
    let defined: BTreeMap<String, i64> = read("include/coterie_mpc.h")
        .lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("#define ")?.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        })
        .collect();
    let expected = BTreeMap::from([
        ("MPC_ABI_VERSION".to_owned(), i64::from(abi::MPC_ABI_VERSION)),
        ("MPC_MAX_INPUT".to_owned(), i64::try_from(abi::MPC_MAX_INPUT).unwrap()),
        ("MPC_MAX_PRESIGNATURES".to_owned(), i64::try_from(abi::MPC_MAX_PRESIGNATURES).unwrap()),
        ("MPC_MAX_STATEMENT".to_owned(), i64::try_from(abi::MPC_MAX_STATEMENT).unwrap()),
        ("MPC_PROTECTED_UNREADABLE".to_owned(), i64::from(abi::MPC_PROTECTED_UNREADABLE)),
        ("MPC_PROTECTED_NO_CORE".to_owned(), i64::from(abi::MPC_PROTECTED_NO_CORE)),
        ("MPC_PROTECTED_LOCKED".to_owned(), i64::from(abi::MPC_PROTECTED_LOCKED)),
        ("MPC_OK".to_owned(), i64::from(abi::MPC_OK)),
        ("MPC_INVALID_ARGUMENT".to_owned(), i64::from(abi::MPC_INVALID_ARGUMENT)),
        ("MPC_UNSEAL_FAILED".to_owned(), i64::from(abi::MPC_UNSEAL_FAILED)),
        ("MPC_SETUP_REFUSED".to_owned(), i64::from(abi::MPC_SETUP_REFUSED)),
        ("MPC_POISONED".to_owned(), i64::from(abi::MPC_POISONED)),
        ("MPC_INTERNAL".to_owned(), i64::from(abi::MPC_INTERNAL)),
    ]);
    assert_eq!(defined, expected);
}

#[test]
fn header_structs_are_laid_out_alike() {
    assert_eq!(size_of::<abi::mpc_view>(), size_of::<*const u8>() + size_of::<usize>());
    assert_eq!(size_of::<abi::mpc_buffer>(), size_of::<abi::mpc_view>());
    assert_eq!(core::mem::offset_of!(abi::mpc_view, data), 0);
    assert_eq!(core::mem::offset_of!(abi::mpc_buffer, len), size_of::<*const u8>());
    let code = without_comments(&read("include/coterie_mpc.h"));
    assert_eq!(squeeze(between(&code, "struct mpc_view {", "}")), "const uint8_t *data; size_t len;");
    assert_eq!(squeeze(between(&code, "struct mpc_buffer {", "}")), "uint8_t *data; size_t len;");
}

fn proto_code() -> String {
    ["core", "group", "import"]
        .map(|name| read(&format!("../../../proto/coterie/core/v1/{name}.proto")))
        .concat()
        .lines()
        .map(|line| line.split("//").next().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

fn proto_enum(name: &str, prefix: &str) -> BTreeMap<String, i32> {
    between(&proto_code(), &format!("enum {name} {{"), "}")
        .split(';')
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, number)| {
            let name = name.trim().strip_prefix(prefix).unwrap();
            let camel: String = name
                .split('_')
                .map(|word| {
                    let (head, tail) = word.split_at(1);
                    head.to_owned() + &tail.to_lowercase()
                })
                .collect();
            (camel, number.trim().parse().unwrap())
        })
        .filter(|(_, number)| *number != 0)
        .collect()
}

#[test]
fn enums_of_the_engine_are_those_of_the_contract() {
    let causes = AbortCause::ALL.map(|cause| (format!("{cause:?}"), i32::from(cause.number())));
    assert_eq!(proto_enum("AbortCause", "ABORT_CAUSE_"), BTreeMap::from(causes));
    let reasons = Reject::ALL.map(|reason| (format!("{reason:?}"), i32::from(reason.number())));
    assert_eq!(proto_enum("RejectReason", "REJECT_REASON_"), BTreeMap::from(reasons));
    let advice = [Advice::Retry, Advice::ExcludeParty, Advice::FreezeKey]
        .map(|advice| (format!("{advice:?}"), advice as i32));
    assert_eq!(proto_enum("Advice", "ADVICE_"), BTreeMap::from(advice));
    let verdicts = [Verdict::Proven, Verdict::Restarted, Verdict::Refuted, Verdict::Another, Verdict::Told]
        .map(|verdict| (format!("{verdict:?}"), verdict as i32));
    assert_eq!(proto_enum("Verdict", "VERDICT_"), BTreeMap::from(verdicts));
}

/// The messages by hand.
fn rust_code() -> String {
    ["src/proto.rs", "src/proto/group_call.rs", "src/proto/group_reply.rs", "src/proto/import.rs"]
        .map(read)
        .concat()
}

#[test]
fn enums_by_hand_have_the_numbers_of_the_contract() {
    let source = rust_code();
    for (name, prefix) in [
        ("ProtocolId", "PROTOCOL_ID_"),
        ("ApprovalDecision", "APPROVAL_DECISION_"),
        ("GroupRefusal", "GROUP_REFUSAL_"),
    ] {
        let ours: Vec<(String, i32)> = between(&source, &format!("pub enum {name} {{"), "\n}")
            .lines()
            .filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = "))
            .map(|(name, number)| (name.to_owned(), number.parse().unwrap()))
            .filter(|(_, number)| *number != 0)
            .collect();
        assert_eq!(proto_enum(name, prefix), ours.into_iter().collect(), "{name}");
    }
}

/// (field, type, number, repeated) of each message.
type Fields = BTreeSet<(String, String, u32, bool)>;

fn proto_message(name: &str) -> Fields {
    let code = proto_code();
    let start = code.find(&format!("message {name} {{")).unwrap_or_else(|| panic!("message {name}"));
    let body = &code[start..];
    let end = body.find("\n}").unwrap();
    body[body.find('{').unwrap() + 1..end]
        .replace("oneof progress {", "")
        .replace("oneof call {", "")
        .replace("oneof reply {", "")
        .replace('}', "")
        .split(';')
        .filter_map(|field| field.split_once('='))
        .map(|(left, number)| {
            let words: Vec<&str> = left.split_whitespace().collect();
            let (name, kind) = (words[words.len() - 1], words[words.len() - 2]);
            (name.to_owned(), kind.to_owned(), number.trim().parse().unwrap(), words[0] == "repeated")
        })
        .collect()
}

fn rust_message(source: &str, name: &str) -> Fields {
    let body = between(source, &format!("pub struct {name} {{"), "\n}");
    body.split("#[prost(")
        .skip(1)
        .filter(|field| !field.starts_with("oneof"))
        .map(|field| rust_field(field, |line| line.strip_prefix("pub ")?.strip_suffix(',')?.split_once(": ")))
        .collect()
}

fn rust_field(
    field: &str,
    declaration: impl Fn(&str) -> Option<(&str, &str)>,
) -> (String, String, u32, bool) {
    let attribute = &field[..field.find(")]").unwrap()];
    let number = between(attribute, "tag = \"", "\"").parse().unwrap();
    let (name, rust) = field.lines().find_map(|line| declaration(line.trim())).unwrap();
    let inner = rust.trim_start_matches("Vec<").trim_start_matches("Option<").trim_end_matches('>');
    let repeated = attribute.contains("repeated");
    let kind = match attribute.split([',', ' ', '=']).next().unwrap() {
        "message" => inner.to_owned(),
        // Enumerations are numbers on the wire; which one it is shows in the name.
        "enumeration" | "int32" => "enum".to_owned(),
        scalar => scalar.to_owned(),
    };
    let name = if name == "own" { "self" } else { name };
    (name.to_owned(), kind, number, repeated)
}

/// `GroupRefused` as `group_refused`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (place, letter) in name.char_indices() {
        if letter.is_uppercase() && place > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[test]
fn messages_are_those_of_the_contract() {
    let (source, code) = (rust_code(), proto_code());
    let calls = ["group", "import"]
        .map(|name| read(&format!("../../../proto/coterie/core/v1/{name}.proto")))
        .concat();
    let of_calls = calls.lines().filter_map(|line| line.strip_prefix("message ")?.split_once(' '));
    for name in [
        "Party",
        "SessionConfig",
        "KeyPublic",
        "VerificationShare",
        "Outgoing",
        "Waiting",
        "Dropped",
        "Done",
        "Presignature",
        "Culprit",
        "Abort",
        "Accusation",
        "VerifyCall",
        "SignatureClaim",
        "Step",
        "GroupTerms",
        "GroupParties",
        "OpenersKey",
        "PartyBytes",
    ]
    .into_iter()
    .chain(of_calls.map(|(name, _)| name))
    {
        if code.contains(&format!("message {name} {{}}")) {
            assert!(source.contains(&format!("pub struct {name} {{}}")), "message {name}");
            continue;
        }
        let enums =
            ["ProtocolId", "RejectReason", "AbortCause", "Advice", "ApprovalDecision", "GroupRefusal"];
        let contract: Fields = proto_message(name)
            .into_iter()
            .map(|(field, kind, number, repeated)| {
                let kind = if enums.contains(&kind.as_str()) { "enum".to_owned() } else { kind };
                (field, kind, number, repeated)
            })
            .collect();
        let mut ours = rust_message(&source, name);
        let of = [
            ("Step", "Progress"),
            ("GroupCall", "Call"),
            ("GroupReply", "Reply"),
            ("ImportCall", "ImportCallKind"),
            ("ImportReply", "ImportReplyKind"),
        ];
        if let Some((_, variants)) = of.into_iter().find(|(message, _)| *message == name) {
            let variants = between(&source, &format!("pub enum {variants} {{"), "\n}");
            ours.extend(variants.split("#[prost(").skip(1).map(|variant| {
                let (kind, name, number, repeated) =
                    rust_field(variant, |line| line.strip_suffix("),")?.split_once('('));
                (snake(&kind), name, number, repeated)
            }));
        }
        assert_eq!(ours, contract, "message {name}");
    }
}
