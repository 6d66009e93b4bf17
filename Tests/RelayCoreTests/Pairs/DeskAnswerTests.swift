// The identifiers that help desks put into their mails return from every program unchanged.

import Foundation
import PairTesting
import TestSupport
import Testing

@Suite(.blocking) struct DeskAnswerTests {
    private struct Desk: Decodable {
        struct Value: Decodable {
            var kind: String
            var value: String
            var `where`: [String]
        }
        var id: String
        var tokens: [Value]?
        var markers: [Value]?
        var links: [Value]?

        var values: [Value] { (tokens ?? []) + (markers ?? []) + (links ?? []) }
    }

    /// The domains that the desks' teams have registered.
    private static let domains = [
        "zendesk": "example.zendesk.com", "freshdesk": "example.freshdesk.com",
        "helpscout": "helpscout.net",
        "salesforce": "example.my.salesforce.com", "rt": "example.com",
        "zammad": "zammad.example.com",
        "otrs": "otrs.example.com", "front": "frontapp.com", "jira": "example.atlassian.net",
        "github": "github.com",
        "freescout": "example.org", "intercom": "outbound.intercom.example.com",
    ]

    private static let desks: [Desk] =
        (try? JSONDecoder().decode(
            [Desk].self,
            from: Data(
                contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                    .deletingLastPathComponent()
                    .appending(path: "Vectors/programs/help-desks.json")))) ?? []

    /// The parts of a value that must return unchanged: its lines, without the parts that the mail
    /// fills in.
    private static func lines(_ value: String) -> [String] {
        Octets.lines(of: Octets.replace("{{subject}}", with: "Order 12", in: value))
    }

    private static func mail(_ value: Desk.Value, domain: String) -> [UInt8] {
        let text = Octets.replace("{{subject}}", with: "Order 12", in: value.value)
        let isSubject = value.where.contains { $0.utf8.elementsEqual("Subject".utf8) }
        let isID = value.kind.utf8.elementsEqual("message-id".utf8)
        let isMarkup = text.utf8.first == UInt8(ascii: "<") && !isID
        let lines =
            ["Hello Jane,", "", "see below.", ""] + Octets.lines(of: isID ? "The end" : text) + [
                "", "Yours",
            ]
        let body =
            isMarkup
            ? "<html><body><p>Hello</p>\(text)<p>Yours</p></body></html>"
            : lines.joined(separator: "\r\n")
        return Array(
            ("From: Desk <desk@\(domain)>\r\nTo: \(TeamMail.relay)\r\nSubject: \(isSubject ? text : "Order 12")\r\n"
                + "Message-ID: \(isID ? text : "<1@\(domain)>")\r\nDate: Fri, 21 Nov 2025 05:00:00 +0000\r\nMIME-Version: 1.0\r\n"
                + "Content-Type: text/\(isMarkup ? "html" : "plain"); charset=utf-8\r\n"
                + "Content-Transfer-Encoding: 8bit\r\n\r\n\(body)\r\n")
                .utf8)
    }

    @Test func valuesOfHelpDesks_answeredByPrograms_comeBackToTheLetter() {
        let relay = PairRelay(forms: PairTests.forms)
        let forms = PairTests.forms.indices.filter {
            let form = PairTests.forms[$0]
            return form.isReply && !form.breaksLines
                && !form.id.utf8.starts(with: "attribution".utf8)
        }
        var (count, answered) = (0, 0)
        var lost: [String] = []
        for desk in Self.desks {
            let domain = Self.domains[desk.id] ?? "desk.example"
            for value in desk.values
            where !["address", "header", "list"].contains(where: {
                value.kind.utf8.elementsEqual($0.utf8)
            }) {
                for step in 0..<4 {
                    let form = forms[(count &* 7 + step) % forms.count]
                    let pair = PairSpec(seed: UInt64(count), form: form, shape: .plain, plants: [])
                    count += 1
                    var sent: [UInt8] = []
                    let seen = relay.see(
                        Self.mail(value, domain: domain), from: "bounces@\(domain)", team: domain
                    ) {
                        let answer = ProgramAnswer(relay.forms[form], to: $0, pair)
                        sent = answer.octets
                        return (answer.octets, answer.sender, answer.recipients)
                    }
                    guard let out = seen.octets else { continue }
                    answered += 1
                    let (before, after) = (ReadPart(sent).items(), ReadPart(out).items())
                    for line in Self.lines(value.value) where !line.isEmpty {
                        // Changes by the program itself are not the relay's.
                        for item in before
                        where Octets.holds(line, in: item.octets) && !Self.isHidden(item.place) {
                            guard
                                !after.contains(where: {
                                    $0.place == item.place && Octets.holds(line, in: $0.octets)
                                })
                            else {
                                continue
                            }
                            lost.append(
                                "\(desk.id), form \(relay.forms[form].id), \(item.place): \(line)")
                        }
                    }
                }
            }
        }
        print(
            "help desks: \(lost.count) values lost of \(count) answers, \(answered) of them relayed"
        )
        for line in lost.prefix(30) { print("  \(line)") }
        #expect(Self.desks.count >= 10 && answered * 100 >= count * 98 && lost.isEmpty)
    }

    /// Fields that no reply has.
    private static func isHidden(_ place: String) -> Bool {
        place.utf8.starts(with: "field ".utf8)
            && !["subject", "in-reply-to", "references"].contains {
                place.utf8.elementsEqual("field \($0)".utf8)
            }
    }
}
