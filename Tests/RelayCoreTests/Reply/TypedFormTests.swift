// The forms in which a user types addresses: Vectors/typed-forms.txt.

import Foundation
import InternetMessage
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct TypedFormTests {
    private static let engine = Fixture(evidence: .init()).engine

    struct Case: CustomTestStringConvertible, Sendable {
        let typed: String
        let sent: String
        var testDescription: String { typed }
    }

    private static let cases: [Case] = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../Vectors/typed-forms.txt")
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
            let halves = $0.split(separator: " => ").map {
                String($0).replacing("\\n", with: "\r\n")
            }
            return halves.count == 2 ? Case(typed: halves[0], sent: halves[1]) : nil
        }
    }()

    /// The text of the outgoing reply, or the reason for its refusal.
    private static func said(
        _ text: String, type: String = "text/plain", inbox: String = "anna.berg@inbox.example"
    ) throws -> String {
        let inbox = try #require(AddrSpec(envelope: inbox))
        let own = UserInbox(address: InboxAddress(inbox), isVerified: true)
        let account = RelayAccount(
            number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress,
            isForwardingOn: true, hasLiveGrant: true, inbox: own, inboxes: [own], sharedName: nil,
            sources: Fixture.anna.sources)
        let header = HeaderSection([
            HeaderField("From", "<\(inbox.wireForm)>"),
            HeaderField("Content-Type", "\(type); charset=utf-8"),
            HeaderField("Content-Transfer-Encoding", "8bit"),
        ])
        let rewriting = ReplyRewriting(
            engine: engine, account: account, header: header, envelopeSender: inbox.wireForm,
            isAutomatic: false, now: Fixture.now, hops: 1,
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        let body = Array(text.utf8)
        do throws(Refusal) {
            let outgoing = try rewriting.rewrite(body: body)
            return String(
                decoding: (outgoing.body ?? [body[...]]).reduce(into: [UInt8]()) { $0 += $1 },
                as: UTF8.self)
        } catch {
            return "\(error.reply.code) \(error.reason.code)"
        }
    }

    @Test func typedForms_haveVectors() { #expect(Self.cases.count > 40) }

    @Test(arguments: Self.cases) func typedForm_inText_isSentAsItsVector(_ form: Case) throws {
        #expect(try Self.said("Hello, see \(form.typed)\r\n") == "Hello, see \(form.sent)\r\n")
    }

    @Test(arguments: Self.cases.filter { !$0.typed.contains("\r\n") })
    func typedForm_inMarkup_isSentAsItsVector(_ form: Case) throws {
        #expect(
            try Self.said("<p>Hello, see \(form.typed)</p>", type: "text/html")
                == "<p>Hello, see \(form.sent)</p>")
    }

    /// The ids of Google's calendar name a user of gmail.com as `LOCAL@m`.
    @Test(arguments: ["abc123def456 ", "abc123def4567 ", "abc123def45678 "])
    func calendarID_namesTheInboxInShortForm_isRewritten(_ event: String) throws {
        let id = Data("\(event)k77x.anna42@m".utf8).base64EncodedString().replacing("=", with: "")
        let link = "https://calendar.google.com/calendar/event?eid="
        for (text, type) in [
            ("See \(link)\(id) there", "text/plain"),
            ("<a href=\"\(link)\(id)\">x</a>", "text/html"),
        ] {
            let said = try Self.said(text, type: type, inbox: "k77x.anna42@gmail.com")
            let sent = try #require(said.split(separator: "eid=").last).prefix {
                $0.isLetter || $0.isNumber
            }
            let padded = sent + String(repeating: "=", count: (4 - sent.utf8.count % 4) % 4)
            let decoded = String(
                decoding: try #require(Data(base64Encoded: String(padded))), as: UTF8.self)
            #expect(decoded == "\(event)annarelay2@relay.example", "\(said)")
            // Another user's stays.
            #expect(try Self.said(text, type: type, inbox: "other.k77x@gmail.com") == text)
        }
    }

    /// Paths in quoted text, of which no part stays.
    @Test(arguments: [
        #"C:\Documents and Settings\anna.berg\Desktop"#, #"C:\Program Files (x86)\anna.berg\x"#,
        "/export/home/anna.berg/x", "/media/anna.berg/usb", "/cygdrive/c/Users/anna.berg/x",
        "/var/mail/anna.berg", "/run/user/anna.berg/x", "../../Users/anna.berg/x",
    ])
    func quotedPath_withSpacesOrAnotherHome_isRemoved(_ path: String) throws {
        let said = try Self.said(
            "Hello\r\n\r\nOn Fri, 21 Nov 2025, Juice wrote:\r\n> see \(path) bye\r\n")
        #expect(!said.contains("berg") && said.contains("[path] bye"), "\(said)")
    }

    @Test func quotedPath_beforeWords_endsAtItsSpace() throws {
        let said = try Self.said(
            "Hello\r\n\r\nOn Fri, 21 Nov 2025, Juice wrote:\r\n> C:\\x\\a.txt, and D:\\b is new\r\n"
        )
        #expect(said.contains("> [path], and [path] is new"), "\(said)")
    }
}
