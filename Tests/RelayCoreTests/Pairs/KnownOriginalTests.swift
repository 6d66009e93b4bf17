// Answers to public mails with a guess in every line, and public samples of replies with a guess in
// every quoted line.

import Foundation
import PairTesting
import TestSupport
import Testing

@Suite(.blocking, .enabled(if: Folders.hasConformance, Folders.skipped)) struct KnownOriginalTests {
    private static let relay = PairRelay(forms: PairTests.forms)
    private static let guess = Guess.all[0]

    private static let substitutions: Substitutions = {
        var substitutions = Substitutions()
        substitutions.learn(guess.spelled(.plain, .right), guess.spelled(.plain, .wrong))
        return substitutions
    }()

    /// The guess after the first word of the line.
    private static func planted(_ line: [UInt8], _ side: Side) -> [UInt8] {
        guard let first = line.firstIndex(where: { $0 > 0x20 }) else { return line }
        // The mark of a quotation does not count as a word.
        var start = first
        while start < line.count, [0x20, 0x3E, 0x7C].contains(line[start]) { start += 1 }
        let end = line[start...].firstIndex(of: 0x20) ?? line.count
        return line[..<end] + [0x20] + guess.spelled(.plain, side).utf8 + line[end...]
    }

    /// The guess in every run of text that has a word.
    private static func plantedMarkup(_ html: [UInt8], _ side: Side) -> [UInt8] {
        var output: [UInt8] = []
        var isText = true
        for octet in html {
            if octet == UInt8(ascii: "<") {
                if isText, let last = output.last, last > 0x20, last != UInt8(ascii: ">") {
                    output += [0x20] + guess.spelled(.plain, side).utf8
                }
                isText = false
            }
            output.append(octet)
            if octet == UInt8(ascii: ">") { isText = true }
        }
        return output
    }

    private static func mail(_ type: String, _ text: [UInt8]) -> [UInt8] {
        Array(
            ("From: Juice Shop <\(TeamMail.team)>\r\nTo: \(TeamMail.relay)\r\nSubject: Hello\r\nMessage-ID: <1@juice.example>\r\n"
                + "Date: Fri, 21 Nov 2025 05:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: \(type); charset=utf-8\r\n"
                + "Content-Transfer-Encoding: base64\r\n\r\n").utf8) + Octets.base64Lines(text) + [
                13, 10,
            ]
    }

    /// The text as UTF-8; invalid octets are replaced.
    private static func valid(_ octets: [UInt8]) -> [UInt8] {
        Array(String(decoding: octets, as: UTF8.self).utf8)
    }

    /// The difference between the answers of a form to a mail with a guess in every line.
    private static func difference(
        _ text: [UInt8], isMarkup: Bool, form: Int, seed: UInt64
    ) -> (found: Difference?, isAnswered: Bool) {
        let pair = PairSpec(seed: seed, form: form, shape: .plain, plants: [])
        func see(_ side: Side) -> Seen {
            let planted =
                isMarkup
                ? plantedMarkup(text, side)
                : Array(
                    Octets.lines(text).map { Self.planted($0, side) }.joined(separator: [13, 10]))
            return relay.see(
                mail(isMarkup ? "text/html" : "text/plain", planted), from: "bounces@juice.example"
            ) {
                let answer = ProgramAnswer(relay.forms[form], to: $0, pair)
                return (answer.octets, answer.sender, answer.recipients)
            }
        }
        let right = see(.right)
        return (
            Seen.differences(right, see(.wrong), substitutions).first { !$0.isOfForward },
            right.octets != nil
        )
    }

    /// The number of answers that differ. It may only decrease: the goal is 1 % of plain replies,
    /// and no reply with markup.
    private static let (knownPlain, knownMarkup, knownSamples) = (3, 0, 0)

    @Test(arguments: [false, true]) func publicMail_guessInEveryLine_bringsTheSameBack(
        isMarkup: Bool
    ) {
        let forms = PairTests.forms.indices.filter {
            let form = PairTests.forms[$0]
            return form.isReply && form.hasMarkup == isMarkup
                && !form.id.utf8.starts(with: "attribution".utf8)
        }
        var (count, answered, seed) = (0, 0, UInt64(0))
        var differing: [String] = []
        for entry in Corpus.entries("mail") {
            let part = ReadPart(entry.bytes)
            guard let text = part.first(isMarkup ? "text/html" : "text/plain")?.content,
                text.count > 20, text.count < 20_000
            else { continue }
            for _ in 0..<2 {
                seed += 1
                let form = forms[Int(seed % UInt64(forms.count))]
                let (found, isAnswered) = Self.difference(
                    Self.valid(text), isMarkup: isMarkup, form: form, seed: seed)
                count += 1
                if isAnswered { answered += 1 }
                if let found {
                    differing.append("\(entry.name), form \(PairTests.forms[form].id): \(found)")
                }
            }
        }
        print(
            "public mail, markup \(isMarkup): \(differing.count) of \(count) answers differ; \(answered) were relayed"
        )
        for line in differing.prefix(40) { print("  \(line)") }
        #expect(differing.count <= (isMarkup ? Self.knownMarkup : Self.knownPlain))
        #expect(count > 100 && answered * 100 >= count * 95)
    }

    /// Vectors/quotations.txt has the first quoted line of each sample, as a person reads it.
    @Test func publicReplies_guessInEveryQuotedLine_bringTheSameBack() throws {
        let list = try String(
            contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent()
                .appending(path: "Vectors/quotations.txt"), encoding: .utf8)
        var (count, answered) = (0, 0)
        var differing: [String] = []
        for entry in Octets.lines(of: list) where !entry.utf8.starts(with: "#".utf8) {
            let fields = entry.split(separator: " ")
            guard fields.count == 2, let first = Int(fields[1]), first > 0,
                let data = try? Data(
                    contentsOf: Folders.conformance.appending(path: "replies/\(fields[0])"))
            else { continue }
            let lines = Octets.lines(Self.valid([UInt8](data)))
            // If some lines have marks, those without are the user's.
            let hasMarks = lines.contains { $0.first == UInt8(ascii: ">") }
            func see(_ side: Side) -> Seen {
                let planted = lines.enumerated().map { index, line in
                    // The program wrote the end of the attribution.
                    let isAttribution =
                        index < first + 3 && Octets.trim(line).last == UInt8(ascii: ":")
                    let isQuoted =
                        index + 1 > first && (!hasMarks || line.first == UInt8(ascii: ">"))
                    return isQuoted && !isAttribution ? Self.planted(line, side) : line
                }
                let quoted = planted.map {
                    $0.first == UInt8(ascii: ">") ? Array($0.drop { $0 == 0x3E || $0 == 0x20 }) : $0
                }
                let original = Self.mail("text/plain", Array(quoted.joined(separator: [13, 10])))
                return Self.relay.see(original, from: "bounces@juice.example") { arrived in
                    let text = Array(planted.joined(separator: [13, 10]))
                    let header =
                        "From: Jane <\(Guess.inbox)>\r\nTo: \(arrived.authorAddress)\r\nSubject: Re: Hello\r\n"
                        + "MIME-Version: 1.0\r\n"
                        + "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
                    return (
                        Array(header.utf8) + text + [13, 10], Guess.inbox, [arrived.authorAddress]
                    )
                }
            }
            let right = see(.right)
            count += 1
            if right.octets != nil { answered += 1 }
            if let found = Seen.differences(right, see(.wrong), Self.substitutions).first(where: {
                !$0.isOfForward
            }) {
                differing.append("\(fields[0]): \(found)")
            }
        }
        print("public replies: \(differing.count) of \(count) differ; \(answered) were relayed")
        for line in differing { print("  \(line)") }
        #expect(differing.count <= Self.knownSamples && count > 50 && answered * 100 >= count * 95)
    }
}
