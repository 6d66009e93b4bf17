// A message of few pieces, and the verdict of the check.

import InternetMessage
import Support

@testable import LeakSearch

enum LeakFixture {
    static let relayAddress = "5d5mfp4h5v@relay.example"

    static func octets(_ text: String) -> [UInt8] { Array(text.utf8) }

    static var names: LeakNames {
        var names = LeakNames(
            inboxes: [
                LeakNames.Inbox(local: octets("jane.k77x"), domain: octets("home.example")),
                LeakNames.Inbox(
                    local: octets("maria.lopez42"), domain: octets("gmail.com"), ignoresDots: true),
                LeakNames.Inbox(local: octets("bj\u{F6}rn"), domain: octets("m\u{FC}ller.example")),
                LeakNames.Inbox(
                    local: octets("bj\u{F6}rn"), domain: octets("xn--mller-kva.example")),
            ],
            words: [octets("jane.k77x"), octets("maria.lopez42")],
            relayAddress: octets(relayAddress),
            relayDomains: [octets("relay.example")])
        names.tokens = LeakNames.Tokens(anchors: [octets("zq7")]) {
            { word, index in word.count >= index + 6 }
        }
        return names
    }

    /// A piece of a message, with its octets.
    struct Part {
        let octets: [UInt8]
        let content: StretchMap.Content

        static func text(
            _ parts: [(String, StretchMap.Kind)], form: StretchMap.Form = StretchMap.Form(),
            encode: ([UInt8]) -> [UInt8] = { $0 }
        ) -> Part {
            var stretches: [StretchMap.Stretch] = []
            var decoded: [UInt8] = []
            for (text, kind) in parts {
                decoded += LeakFixture.octets(text)
                stretches.append(text.utf8.count, kind)
            }
            return Part(octets: encode(decoded), content: .text(form, stretches))
        }

        static func file(_ octets: [UInt8], _ encoding: TransferEncoding = .binary) -> Part {
            Part(octets: octets, content: .file(encoding, number: 7))
        }
    }

    static func verdict(
        _ parts: [Part], names: LeakNames = names, header: [LeakCheck.Field] = [],
        work: WorkBudget = WorkBudget(octets: 1 << 20)
    ) -> LeakCheck.Verdict {
        var map = StretchMap()
        for part in parts { map.append(part.octets.count, part.content) }
        return LeakCheck(names).verdict(
            header: header, body: parts.map { $0.octets[...] }, map: map, work: work)
    }

    static func typed(
        _ text: String, names: LeakNames = names, isMarkup: Bool = false
    ) -> LeakCheck.Verdict {
        verdict([.text([(text, .typed)], form: StretchMap.Form(isMarkup: isMarkup))], names: names)
    }

    static func neutral(_ text: String, isMarkup: Bool = false) -> LeakCheck.Verdict {
        verdict([.text([(text, .neutral)], form: StretchMap.Form(isMarkup: isMarkup))])
    }

    static func file(_ text: String) -> LeakCheck.Verdict { verdict([.file(octets(text))]) }

    static func base64(_ text: String, lines: Int = .max, between: String = "\r\n") -> String {
        let encoded = Array(Base64.encodeUnbroken(octets(text)))
        var output: [UInt8] = []
        for (index, octet) in encoded.enumerated() {
            if index > 0, index % lines == 0 { output += octets(between) }
            output.append(octet)
        }
        return String(decoding: output, as: UTF8.self)
    }

    static func hexadecimal(_ text: String) -> String {
        text.utf8.map { octet in
            let digits = Array("0123456789abcdef".unicodeScalars)
            return String(digits[Int(octet >> 4)]) + String(digits[Int(octet & 15)])
        }.joined()
    }
}
