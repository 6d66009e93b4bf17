// Whether a program or a person wrote a message, by the signs that programs leave.

import Foundation
import InternetMessage
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct AutomaticMailTests {
    private static func header(_ fields: [String]) -> HeaderSection {
        let text = fields.map { $0.replacingOccurrences(of: "|", with: "\r\n") + "\r\n" }.joined()
        return Message.parse(
            Array((text + "From: anna@home.example\r\nTo: eva@app.example\r\n\r\n").utf8)
        ).header
    }

    private static func word(_ header: HeaderSection) -> String {
        switch AutomaticMail.sign(header) {
        case .certain: "certain"
        case .likely: "likely"
        case nil: "person"
        }
    }

    @Test func sign_eachKnownMark_saysWhoWrote() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent(
                "../Vectors/automatic-mail.txt")
        var words: [String: Int] = [:]
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        where !line.hasPrefix("#") {
            let parts = line.split(separator: "\t", maxSplits: 1).map(String.init)
            let header = Self.header([parts[1]])
            #expect(Self.word(header) == parts[0], "\(parts[1])")
            #expect(
                AutomaticMail.isWrittenByProgram(header) == (parts[0] != "person"), "\(parts[1])")
            #expect(AutomaticMail.isAutomatic(header) == (parts[0] == "certain"), "\(parts[1])")
            words[parts[0], default: 0] += 1
        }
        #expect(
            words["certain", default: 0] >= 31 && words["likely", default: 0] >= 14
                && words["person", default: 0] >= 14)
    }

    @Test func sign_aFieldBesideASubject_isCertain() {
        #expect(
            Self.word(Self.header(["Subject: Automatic reply: x", "X-Auto-Reply: yes"]))
                == "certain")
        #expect(Self.word(Self.header([])) == "person")
    }

    private static let secondSign = "X-Auto-Response-Suppress: All"

    @Test(arguments: [
        "Subject: Automatic reply: your order", "Subject: OUT OF OFFICE",
        "Subject: =?utf-8?B?6Ieq5YuV6L+U5L+h?=",
        "Subject: Abwesenheitsnotiz: Rechnung",
    ])
    func isAutomatic_subjectBesideASecondSign_is(subject: String) {
        #expect(AutomaticMail.isAutomatic(Self.header([subject, Self.secondSign])))
        #expect(AutomaticMail.isAutomatic(Self.header([subject, "X-Loop: anna@home.example"])))
        #expect(!AutomaticMail.isAutomatic(Self.header([subject])))
        #expect(
            !AutomaticMail.isAutomatic(Self.header([subject, "X-Auto-Response-Suppress: none"])))
        // Mail to a return path: people do not write there.
        #expect(AutomaticMail.isAutomatic(Self.header([subject]), isAtReturnPath: true))
    }

    @Test(arguments: [
        "Subject: Re: Automatic reply: your order", "Subject: AW: Abwesenheitsnotiz: Rechnung",
        "Subject: [EXTERNAL] Automatic reply: your order", "Subject: Fwd: Out of Office",
        "Subject: Anna is out of the office.",
        "Subject: My automatic reply is still on", "Subject: Your order (Out of Office)",
    ])
    func isAutomatic_wordsNotAtTheBeginning_isNot(subject: String) {
        #expect(!AutomaticMail.isAutomatic(Self.header([subject, Self.secondSign])))
        #expect(!AutomaticMail.isAutomatic(Self.header([subject]), isAtReturnPath: true))
    }

    @Test(arguments: [
        "List-Id: <friends.lists.example>", "List-Post: <mailto:friends@lists.example>",
        "X-BeenThere: friends@lists.example",
        "Mailing-List: list friends@lists.example", "Sender: owner-friends@lists.example",
        "Sender: Friends <friends-bounces@lists.example>",
        "Sender: Friends <FRIENDS@LISTSERV.EXAMPLE>",
        "Resent-Sender: friends-request@lists.example", "Errors-To: friends-admin@lists.example",
    ])
    func isAutomatic_personsMailThroughAMailingList_isNot(field: String) {
        for word in ["list", "bulk", "junk"] {
            #expect(
                !AutomaticMail.isAutomatic(Self.header([field, "Precedence: \(word)"])), "\(word)")
            #expect(
                AutomaticMail.isAutomatic(
                    Self.header([field, "Precedence: \(word)", "Auto-Submitted: auto-replied"])))
        }
        #expect(
            !AutomaticMail.isAutomatic(
                Self.header([field, "X-Loop: friends", "Subject: Vacation: who comes along?"])))
        #expect(AutomaticMail.isAutomatic(Self.header([field, "Precedence: auto_reply"])))
    }

    @Test func isAutomatic_nullSenderAtAReturnPath_saysNothing() {
        let header = Self.header(["Return-Path: <>"])
        #expect(
            AutomaticMail.isAutomatic(header)
                && !AutomaticMail.isAutomatic(header, isAtReturnPath: true))
    }

    /// Replies written by people, as collected by three projects.
    @Test(.enabled(if: Corpus.isThere, "no conformance data"))
    func isAutomatic_publicReplies_isNot() throws {
        let folder = Corpus.root.appendingPathComponent("replies")
        let files = try #require(
            FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var count = 0
        for case let file as URL in files where ["txt", "eml"].contains(file.pathExtension) {
            let octets = Array(try Data(contentsOf: file))
            // Most are only bodies; in some, the first lines are fields.
            for header in [Message.parse(octets).header, HeaderSection.parse(octets[...]).header] {
                #expect(!AutomaticMail.isAutomatic(header), "\(file.lastPathComponent)")
            }
            count += 1
        }
        #expect(count > 100)
    }
}
