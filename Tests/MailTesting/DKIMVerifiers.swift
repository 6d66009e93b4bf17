// Independent DKIM verifiers: dkimpy and Mail::DKIM, run over a folder of messages.

import Foundation
import TestSupport

package enum DKIMVerifiers {
    private static let own = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    /// Python with dkimpy and PyNaCl: from `make test-tools`, or otherwise the system's; nil if
    /// neither has them.
    package static let python: String? = [
        own.deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
            ".build/test-tools/bin/python3"
        ).path,
        "python3",
    ]
    .first { (try? run([$0, "-c", "import dkim, nacl"])) != nil }

    package static let hasMailDKIM =
        (try? run(["perl", "-MMail::DKIM::Verifier", "-MNet::DNS", "-e", "1"])) != nil

    /// A line for each `*.eml` of the folder: its name, then the result of each signature from the
    /// top. Keys are in `dns.tsv`.
    package static func dkimpy(_ folder: URL, python: String) throws -> [[Substring]] {
        try verify([python, script("verify_dkimpy.py")], folder)
    }

    /// As `dkimpy`. Versions without Ed25519 say `unsupported`.
    package static func mailDKIM(_ folder: URL) throws -> [[Substring]] {
        try verify(["perl", script("verify_mail_dkim.pl")], folder)
    }

    private static func script(_ name: String) -> String {
        own.appendingPathComponent("Tools").appendingPathComponent(name).path
    }

    private static func verify(_ command: [String], _ folder: URL) throws -> [[Substring]] {
        try run(command + [folder.path]).split(separator: "\n").map { $0.split(separator: " ") }
    }

    private static func run(_ command: [String]) throws -> String {
        try ProgramRun.succeed(command).output
    }
}
