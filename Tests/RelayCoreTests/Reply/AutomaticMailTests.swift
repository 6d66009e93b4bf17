// Whether a program or a person wrote a message, by the marks that programs leave.

import Foundation
import InternetMessage
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct AutomaticMailTests {
    private static func header(_ fields: [String]) -> HeaderSection {
        let text = fields.map { $0.replacingOccurrences(of: "|", with: "\r\n") + "\r\n" }.joined()
        return Message.parse(Array((text + "From: anna@home.example\r\nTo: eva@app.example\r\n\r\n").utf8)).header
    }

    private static func word(_ header: HeaderSection) -> String {
        switch AutomaticMail.sign(header) {
        case .certain: "certain"
        case .likely: "likely"
        case nil: "person"
        }
    }

    @Test func sign_eachKnownMark_saysWhoWrote() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "../Vectors/automatic-mail.txt")
        var words: [String: Int] = [:]
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: "\t", maxSplits: 1).map(String.init)
            let header = Self.header([parts[1]])
            #expect(Self.word(header) == parts[0], "\(parts[1])")
            #expect(AutomaticMail.isWrittenByProgram(header) == (parts[0] != "person"), "\(parts[1])")
            words[parts[0], default: 0] += 1
        }
        #expect(words["certain", default: 0] >= 31 && words["likely", default: 0] >= 14 && words["person", default: 0] >= 14)
    }

    @Test func sign_aFieldBesideASubject_isCertain() {
        #expect(Self.word(Self.header(["Subject: Automatic reply: x", "X-Auto-Reply: yes"])) == "certain")
        #expect(Self.word(Self.header([])) == "person")
    }

    /// What is limited and never answered as automatic mail is also read as such.
    @Test(arguments: [
        "Auto-Submitted: x", "Precedence: bulk", "X-Autoreply: x", "X-Autoresponder: x", "Content-Type: multipart/report",
    ])
    func isWrittenByProgram_whatIsAutomatic_is(field: String) {
        let header = Self.header([field])
        #expect(AutomaticMail.isAutomatic(header) && AutomaticMail.isWrittenByProgram(header))
    }
}
