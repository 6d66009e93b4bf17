// Submission to a mail server on another machine: TLS from the first octet, and a name and
// password.

import Foundation
import InternetMessage
import PostfixHarness
import TestSupport
import Testing

@testable import Mail

@Suite(.blocking) struct EncryptedSubmissionTests {
    private static let inbox = InboxAddress(
        AddrSpec(localPart: "anna.secret", domain: "home.example"))
    private static let message = Array("Subject: x\r\n\r\nhello\r\n".utf8)

    /// An OpenSSL server that sends these lines to every client with a TLS session, and prints what
    /// it receives.
    private final class TLSServer {
        let port: UInt16
        let process: ManagedProcess
        let folder: String
        let certificate: TestCertificate

        init(_ replies: [String]) throws {
            folder =
                NSTemporaryDirectory() + "postern-submission-"
                + UUID().uuidString.prefix(8).lowercased()
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true)
            certificate = try TestCertificate(in: folder, name: "mail", commonName: "mail")
            port = try FreePort.next()
            process = try ManagedProcess(
                "/usr/bin/env",
                [
                    "openssl", "s_server", "-accept", "127.0.0.1:\(port)", "-cert",
                    certificate.certificate, "-key",
                    certificate.key, "-naccept", "1",
                ])
            try process.waitForLine(containing: "ACCEPT")
            process.writeInput(replies.map { $0 + "\r\n" }.joined())
        }

        /// The received lines.
        var heard: [String] {
            process.lines.map { $0.hasSuffix("\r") ? String($0.dropLast()) : $0 }
        }

        deinit {
            process.end()
            try? FileManager.default.removeItem(atPath: folder)
        }
    }

    private static let willing = [
        "220 mail ESMTP", "250-mail", "250-AUTH PLAIN LOGIN", "250 8BITMIME", "235 2.7.0 ok",
        "250 2.1.0 ok", "250 2.1.5 ok",
        "354 go on",
        "250 2.0.0 Ok: queued as 4Abc", "221 bye",
    ]

    private func submission(
        _ port: UInt16, roots: String?, user: String? = "postern"
    ) throws -> SMTPSubmission {
        SMTPSubmission(
            host: "127.0.0.1", port: port, helo: "mx.relay.example",
            security: .implicit(try SubmissionSecurity.context(rootsPath: roots)),
            credentials: user.map { SubmissionCredentials(user: $0, password: "very secret") },
            timeout: 120, dataTimeout: 120)
    }

    @Test func submission_implicitTLS_sendsWithAuthPlain() throws {
        let server = try TLSServer(Self.willing)
        let receipt = try submission(server.port, roots: server.certificate.certificate).send(
            from: nil, to: Self.inbox, message: Self.message)
        #expect(receipt.queueID == "4Abc" && receipt.keywords.contains("8BITMIME"))
        _ = try server.process.waitForExit()
        let heard = server.heard
        #expect(
            heard.contains(
                "AUTH PLAIN " + Data("\0postern\0very secret".utf8).base64EncodedString()),
            "\(heard)")
        #expect(
            heard.contains("RCPT TO:<anna.secret@home.example>") && heard.contains("Subject: x"))
    }

    @Test func submission_serverWithoutPlain_usesAuthLogin() throws {
        var replies = Self.willing
        replies[2] = "250-AUTH LOGIN"
        replies.replaceSubrange(
            4...4, with: ["334 VXNlcm5hbWU6", "334 UGFzc3dvcmQ6", "235 2.7.0 ok"])
        let server = try TLSServer(replies)
        try submission(server.port, roots: server.certificate.certificate).send(
            from: nil, to: Self.inbox, message: Self.message)
        _ = try server.process.waitForExit()
        #expect(server.heard.contains(Data("very secret".utf8).base64EncodedString()))
    }

    @Test func submission_untrustedCertificate_sendsNothing() throws {
        let server = try TLSServer(Self.willing)
        let failure = #expect(throws: SubmissionFailure.self) {
            try submission(server.port, roots: nil).send(
                from: nil, to: Self.inbox, message: Self.message)
        }
        #expect(
            failure
                == .temporary(.tls, "no TLS: the server has no trusted certificate for 127.0.0.1"))
        server.process.end()
        #expect(!server.process.output.contains("EHLO"))
    }

    @Test func submission_passwordRefused_doesNotEchoIt() throws {
        var replies = Self.willing
        replies[4] = "535 5.7.8 wrong: very secret"
        let server = try TLSServer(replies)
        let failure = #expect(throws: SubmissionFailure.self) {
            try submission(server.port, roots: server.certificate.certificate).send(
                from: nil, to: Self.inbox, message: Self.message)
        }
        #expect(failure == .permanent(.authentication, "535 5.7.8"))
        #expect(!"\(SubmissionCredentials(user: "a", password: "b"))".contains("b\""))
    }

    @Test func submission_serverWithoutTLS_sendsNothing() throws {
        let sink = try SMTPSink()
        defer { sink.stop() }
        #expect(throws: SubmissionFailure.self) {
            try submission(sink.port, roots: nil).send(
                from: nil, to: Self.inbox, message: Self.message)
        }
        // If STARTTLS is required, a server that does not offer it gets no message either.
        let plain = SMTPSubmission(
            host: "127.0.0.1", port: sink.port, helo: "mx.relay.example",
            security: .startTLS(try SubmissionSecurity.context()),
            timeout: 120,
            dataTimeout: 120)
        #expect(throws: SubmissionFailure.permanent(.tls, "the server offers no STARTTLS")) {
            try plain.send(from: nil, to: Self.inbox, message: Self.message)
        }
        #expect(sink.messages.isEmpty)
    }
}
