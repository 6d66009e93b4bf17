// Every form in which the check reads an address of the user from typed text and from files, and
// forms that are not an address.

import InternetMessage
import Support
import Testing

@testable import LeakSearch

@Suite struct LeakFormTests {
    private static let forms: [String] = [
        "jane.k77x@home.example", "Jane.K77X@Home.Example", "<jane.k77x@home.example>",
        "mailto:jane.k77x@home.example?subject=x",
        "jane.k77x+shop@home.example", "\"jane.k77x\"@home.example", "jane.k77x@home.example.",
        "(jane.k77x@home.example)",
        // B1: marks around it.
        "_jane.k77x@home.example_", "*jane.k77x@home.example*", "~jane.k77x@home.example~",
        "/jane.k77x@home.example/",
        // B2: text after it.
        "jane.k77x@home.example-Adresse", "jane.k77x@home.exampleTel.: 49",
        "jane.k77x@home.example_2026.pdf",
        "jane.k77x@home.example2026", "jane.k77x@home.example.Viele Gr\u{FC}\u{DF}e",
        "jane.k77x@home.example.zip",
        "maria.lopez42@gmail.comTel", "mariaLopez42@gmail.com", "m.a.r.i.a.lopez42@gmail.com",
        // Words before it.
        "E-Mail:jane.k77x@home.example", "mailtojane.k77x@home.example",
        "Von=jane.k77x@home.example",
        // Separators.
        "jane.k77x(at)home.example", "jane.k77x [at] home.example", "jane.k77x (a) home.example",
        "jane.k77x\\@home.example",
        "jane.k77x-at-home.example", "jane.k77x_at_home.example",
        "jane.k77x=home.example@list.example",
        "bounce-jane.k77x=home.example@list.example", "jane.k77x#home.example",
        "jane.k77x%home.example@gate.example",
        "SRS0=ab=cd=home.example=jane.k77x@list.example", "jane.k77x-40home.example",
        "jane.k77x*40home.example",
        // Encodings.
        "jane.k77x%40home.example", "jane.k77x%2540home.example", "jane%2Ek77x%40home%2Eexample",
        "jane.k77x=40home.example",
        "jane=2Ek77x=40home=2Eexample", "jane.k77x@home=\r\n.example", "jane.k77x+40home.example",
        "jane.k77x&#64;home.example",
        "jane.k77x&#x40;home.example", "jane.k77x&commat;home&period;example",
        "jane.k77x&#0000000064;home.example",
        "jane.k77x\\u0040home.example", "jane.k77x\\x40home.example", "jane.k77x\\100home.example",
        "a\\njane.k77x@home.example",
        "jane.k77x@home\\\n.example", "jane.k77x&#37;40home.example",
        // Invisible and wide characters.
        "jane.k77x\u{200B}@home.example", "ja\u{AD}ne.k77x@home.exam\u{2060}ple",
        "\u{FF4A}ane.k77x\u{FF20}home.example",
        "jane\u{2024}k77x@home.example",
        "jane.k77x@home.example".unicodeScalars.map { "\($0)\u{0}" }.joined(),
        "Bj\u{F6}rn@M\u{FC}ller.example", "bj\u{D6}rn@xn--mller-kva.example",
        "bj%C3%B6rn@m%C3%BCller.example",
        // Tags.
        "jane.k77x<b>@</b>home.example", "jane.k77x<wbr>@home.example",
        "jane.k77x<!-- > x -->@home.example",
        "<a href=\"mailto:jane.k77x&#64;home.example\">me</a>",
        "<td>x</td><td>jane.k77x@home.example</td>",
        // B6: gateways.
        "https://x-my.sharepoint.com/personal/jane_k77x_home_example/Documents",
        // Encoded words.
        "=?utf-8?Q?jane=2Ek77x=40home.example?=",
        "=?iso-8859-1*de?q?jane.k77x=40home.exam?= =?iso-8859-1?q?ple?=",
    ]

    @Test(arguments: forms) func typed_form_isALeak(_ text: String) {
        let isMarkup = text.utf8.contains(UInt8(ascii: "<"))
        #expect(LeakFixture.typed(text, isMarkup: isMarkup) != .clean)
        #expect(
            LeakFixture.typed("Dear team,\r\n\r\nplease: \(text)\r\n\r\nJane", isMarkup: isMarkup)
                != .clean)
    }

    @Test(arguments: forms) func file_form_isALeak(_ text: String) {
        #expect(LeakFixture.file("name,address\r\nJane,\(text)\r\n") == .file(7))
    }

    /// Readings are compared only around the decoded octets: other encodings far from a form, and
    /// long words.
    @Test(arguments: [
        "%41 words between them ", "=41&#65;\\u0041+41<b>a</b> ", "https://shop.example/?a=%41/",
    ])
    func form_farFromOtherEncodings_isALeak(_ other: String) {
        let isMarkup = other.utf8.contains(UInt8(ascii: "<"))
        for form in Self.forms {
            let lead = other + String(repeating: "plain words ", count: 60)
            let text = "\(lead)\r\n\(form)\r\n\(lead)"
            #expect(
                LeakFixture.typed(text, isMarkup: isMarkup || form.utf8.contains(UInt8(ascii: "<")))
                    != .clean, "\(form)")
            #expect(LeakFixture.file(text) == .file(7), "\(form)")
        }
    }

    /// A mark far before or after the decoded octet still has it in one of its halves.
    @Test func encodedOctet_atTheEndOfALongHalf_isDecoded() {
        for count in [0, 1, 60, 100] {
            let tag = String(repeating: "t", count: count)
            #expect(LeakFixture.typed("jane%2Ek77x+\(tag)@home.example") != .clean, "\(count)")
            #expect(LeakFixture.typed("xjane%2Ek77x+\(tag)@home.example") == .clean, "\(count)")
        }
        let path = String(repeating: "part/", count: 200)
        #expect(LeakFixture.typed("/\(path)jane%2Ek77x/x") != .clean)
        #expect(LeakFixture.typed("https://shop.example/\(path)jane%2Ek77x/x") == .clean)
    }

    private static let innocent: [String] = [
        "jane.k77x@home.example.org", "jane.k77x@home.company", "jane.k88x@home.example",
        "jane.k77x@other.example",
        "jane.k77xy@home.example", "ajane.k77x@home.example", "anna.jane.k77x@home.example",
        "jane.k77x@sub.home.example",
        "home.example", "k77x@home.example", "for get it, jane k77x", "https://jane.k77x.example/",
        "www.shop.example/jane.k77x",
        "https://shop.example/u/jane.k77x", "jane.k77x@", "@jane.k77x", "Jane", "maria lopez",
        "line\r\njane\r\n.k77x@home.example",
        "a line that is so long that a program may break it: jane.k77x@home.example.org\r\n-- \r\nJane",
    ]

    @Test(arguments: innocent) func typed_other_isClean(_ text: String) {
        #expect(LeakFixture.typed(text) == .clean)
    }

    /// Separators count only within a word.
    @Test(arguments: [
        "jane.k77x home.example", "jane.k77x @ home.example", "jane.k77x, home.example",
        "jane.k77x at home.example",
    ])
    func typed_twoWords_areNoAddress(_ text: String) {
        var names = LeakFixture.names
        names.words = []
        #expect(LeakFixture.typed(text, names: names) == .clean)
    }

    private static let paths = [
        #"file:///C:\Users\jane.k77x\clip.xml"#, #"C:\Users\jane.k77x\Desktop"#,
        "/Users/jane.k77x/Library",
        "/home/jane.k77x/x.txt",
        "docs/jane.k77x/notes.txt", #"\\server\jane.k77x\share"#, "file:///home/jane.k77x/x",
        "jane.k77x", "~jane.k77x/public",
    ]

    /// B7.
    @Test(arguments: paths) func localPart_inAPathOfAMachine_isALeak(_ text: String) {
        #expect(LeakFixture.typed(text) == .leak("typed text"))
        #expect(LeakFixture.file("<x15ac:absPath url=\"\(text)\"/>") == .file(7))
    }

    // MARK: base64 and hexadecimal

    private static let plain = [
        "{\"r\":\"jane.k77x@home.example\",\"n\":\"a long enough value behind it, of several lines of digits\"}",
        "19#jane.k77x@home.example7ded9217a8b5", "jane.k77x@home.example",
        "x=1&to=jane.k77x%40home.example&y=2",
        "a much longer text before it, so that the address begins in another line: jane.k77x@home.example, and more after it",
    ]

    /// B3, B4, B5.
    @Test(
        arguments: plain,
        ["\r\n", "\n", "\r\n\t", "\r\n ", "\r\n> ", "\n> > ", "\r\n| ", "=\r\n", "\\\n", "\t", " "])
    func base64_brokenAnyhow_isRead(_ text: String, _ between: String) {
        for lines in [66, 76] {
            for lead in ["", "h=|", "x/y", "abc"] {
                let run = LeakFixture.base64(text, lines: lines, between: between)
                #expect(LeakFixture.typed("X-F: \(lead)\(run)\r\n") != .clean, "\(lead) \(lines)")
                #expect(LeakFixture.file("X-F: \(lead)\(run)\r\n") == .file(7), "\(lead) \(lines)")
            }
        }
    }

    @Test func base64_withinBase64_isRead() {
        var text = "jane.k77x@home.example"
        for depth in 1...3 {
            text = LeakFixture.base64("to=\(text)", lines: 64)
            #expect(LeakFixture.typed(text) != .clean, "depth \(depth)")
        }
    }

    @Test(arguments: ["", "0", "id="]) func hexadecimal_isRead(_ lead: String) {
        let digits = LeakFixture.hexadecimal("to jane.k77x@home.example")
        #expect(LeakFixture.typed(lead + digits) != .clean)
        #expect(
            LeakFixture.typed(
                "> " + lead + String(decoding: digits.utf8.prefix(20), as: UTF8.self) + "\r\n> "
                    + String(decoding: digits.utf8.dropFirst(20), as: UTF8.self)) != .clean)
    }

    @Test func base64OfOtherAddresses_isClean() {
        #expect(
            LeakFixture.typed(LeakFixture.base64("to=jane.k88x@home.example", lines: 76)) == .clean)
    }

    // MARK: Transfer encodings and charsets

    @Test func transferEncodings_areDecoded() {
        let inbox = "Gr\u{FC}\u{DF}e: jane.k77x@home.example"
        func verdict(
            _ octets: [UInt8], _ encoding: TransferEncoding, _ charset: String?
        ) -> LeakCheck.Verdict {
            let form = StretchMap.Form(encoding: encoding, charset: charset)
            return LeakFixture.verdict([
                LeakFixture.Part(
                    octets: octets,
                    content: .text(form, [StretchMap.Stretch(end: octets.count, kind: .typed)]))
            ])
        }
        let utf8 = LeakFixture.octets(inbox)
        #expect(verdict(Base64.encode(utf8), .base64, "utf-8") == .leak("message body"))
        #expect(
            verdict(
                LeakFixture.octets("=6A=61=6E=65.k77x=40home.=\r\nexample"), .quotedPrintable, nil)
                == .leak("message body"))
        for charset in [
            "utf-16", "utf-16le", "utf-16be", "utf-32le", "iso-2022-jp", "utf-7", "ibm037",
            "shift_jis",
        ] {
            guard let octets = Charset.encode("jane.k77x@home.example", charset) else { continue }
            #expect(verdict(octets, .binary, charset) == .leak("message body"), "\(charset)")
            #expect(
                verdict(Base64.encode(octets), .base64, charset) == .leak("message body"),
                "\(charset)")
        }
        #expect(
            verdict(LeakFixture.octets("jane.k77x+AEA-home.example"), .sevenBit, "utf-7")
                == .leak("message body"))
    }

    @Test func stretches_ofWideText_areCountedInCharacters() {
        let first = Charset.encode("hello ", "utf-16be") ?? []
        let second = Charset.encode("jane.k77x@home.example", "utf-16be") ?? []
        var stretches: [StretchMap.Stretch] = []
        stretches.append(6, .neutral)
        stretches.append(22, .typed)
        let part = LeakFixture.Part(
            octets: first + second,
            content: .text(StretchMap.Form(encoding: .binary, charset: "utf-16be"), stretches))
        #expect(LeakFixture.verdict([part]) == .leak("message body"))
    }

    // MARK: Files

    @Test func file_inWindows_isSearchedAcrossTheirEdges() {
        for offset in stride(from: 65_500, to: 65_560, by: 3) {
            let octets =
                [UInt8](repeating: UInt8(ascii: "x"), count: offset)
                + LeakFixture.octets(" jane.k77x@home.example ")
            #expect(LeakFixture.verdict([.file(octets)]) == .file(7), "\(offset)")
            let run =
                [UInt8](repeating: UInt8(ascii: "A"), count: offset)
                + LeakFixture.octets(LeakFixture.base64("to jane.k77x@home.example now"))
            #expect(LeakFixture.verdict([.file(run)]) == .file(7), "\(offset)")
        }
    }

    @Test func file_uuencoded_isDecoded() {
        func line(_ text: String) -> String {
            var octets = LeakFixture.octets(text)
            let count = octets.count
            while octets.count % 3 != 0 { octets.append(0) }
            var output = [UInt8(0x20 + count)]
            for index in stride(from: 0, to: octets.count, by: 3) {
                let group =
                    UInt32(octets[index]) << 16 | UInt32(octets[index + 1]) << 8
                    | UInt32(octets[index + 2])
                for shift in [18, 12, 6, 0] as [UInt32] {
                    output.append(UInt8(group >> shift & 63) + 0x20)
                }
            }
            return String(decoding: output, as: UTF8.self)
        }
        let text = "begin 644 a.txt\r\n\(line("write to jane.k77x@home.example now"))\r\nend\r\n"
        #expect(
            LeakFixture.verdict([.file(LeakFixture.octets(text), .unknown("x-uuencode"))])
                == .file(7))
        #expect(LeakFixture.file(text) == .file(7))
    }

    @Test func file_binaryBesideTheAddress_isFound() {
        for octet in [0x01, 0x09, 0x16, 0x41, 0x61] as [UInt8] {
            var octets = (0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 37 % 31) }
            octets += [octet] + LeakFixture.octets("jane.k77x@home.example") + [octet]
            octets += (0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 41 % 29) }
            #expect(LeakFixture.verdict([.file(octets)]) == .file(7), "\(octet)")
        }
    }

    // MARK: Local parts and addresses of the relay in files

    /// Names of members, as archives and other binary files have them.
    @Test(arguments: [
        "Users/jane.k77x/a.txt", "home/jane.k77x/a.txt", #"C:\Users\jane.k77x\clip.xml"#,
        "/home/jane.k77x/a", "\u{3}/Users/jane.k77x/a", "/Users/jane.k77x", "home/Jane.K77X",
    ])
    func file_binary_namesAFolderOfTheUser_isFound(_ path: String) {
        #expect(LeakFixture.verdict([.file(Self.binary(path))]) == .file(7))
    }

    @Test(arguments: [
        "home/jane.k77xy/a.txt", "x/jane.k77/a.txt", "jane.k77x", "ajane.k77x/b", "/jane.k77x",
    ])
    func file_binary_otherFolder_isNotFound(_ path: String) {
        #expect(LeakFixture.verdict([.file(Self.binary(path))]) == .clean)
    }

    @Test(arguments: [265, 297]) func file_tar_isOwnedByTheUser_isFound(field: Int) {
        func header(_ owner: String) -> [UInt8] {
            var octets = [UInt8](repeating: 0, count: 512)
            for (at, text) in [(0, "a.txt"), (257, "ustar"), (263, "00"), (field, owner)] {
                octets.replaceSubrange(at..<(at + text.utf8.count), with: text.utf8)
            }
            return octets
        }
        let content = [UInt8](repeating: 0, count: 4_096)
        #expect(LeakFixture.verdict([.file(header("jane.k77x") + content)]) == .file(7))
        #expect(LeakFixture.verdict([.file(content + header("jane.k77x") + content)]) == .file(7))
        #expect(LeakFixture.verdict([.file(header("other.k77x") + content)]) == .clean)
    }

    /// The user's address at another team.
    @Test func file_otherAddressOfTheRelay_isFound() {
        for text in ["to dmmxyr2pup@relay.example now", "dmmxyr2pup+x@relay.example"] {
            #expect(LeakFixture.file(text) == .file(7), "\(text)")
            #expect(LeakFixture.verdict([.file(Self.binary(text))]) == .file(7), "\(text)")
        }
        for text in [
            LeakFixture.relayAddress, "postmaster@relay.example", "dmmxyr2pup@relay.example.com",
            "dmmxyr2pup@other.example",
        ] {
            #expect(LeakFixture.file("to \(text) now") == .clean, "\(text)")
        }
    }

    private static func binary(_ text: String) -> [UInt8] {
        let noise = (0..<64).map { UInt8($0 % 8 + 1) }
        return noise + [0] + LeakFixture.octets(text) + [0] + noise
    }
}
