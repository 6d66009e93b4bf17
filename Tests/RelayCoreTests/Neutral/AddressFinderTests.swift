// Candidates of addresses: the forms that are found, their ends, and linear work.

import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct AddressFinderTests {
    /// The candidates of a text in one reading, as `local|domain`.
    private static func found(_ text: String, lens: DecodingPass = []) -> [String] {
        let octets = Array(text.utf8)
        return octets.withUnsafeBufferPointer { buffer in
            let window = DecodedWindow(foldsUnicode: true, capacity: octets.count + 1)
            window.read(buffer, from: 0, to: buffer.count, lens: lens)
            var finder = AddressFinder(window, of: buffer, lens: lens)
            var found: [String] = []
            finder.forEach(in: 0..<buffer.count) { candidate in
                guard !candidate.isDoubtful else { return }
                found.append(
                    String(decoding: window.octets[candidate.local], as: UTF8.self) + "|"
                        + String(decoding: window.octets[candidate.domain], as: UTF8.self))
            }
            return found
        }
    }

    @Test(arguments: [
        "jane.k77x@home.example", "Jane.K77X@HOME.example", "<jane.k77x@home.example>",
        "(jane.k77x@home.example).",
        "_jane.k77x@home.example_", "*jane.k77x@home.example*", "jane.k77x@home.example-Adresse",
        "jane.k77x@home.exampleTel.: 49",
        "jane.k77x@home.example_2026.pdf", "jane.k77x@home.example.pdf",
        "jane.k77x@home.example.zip",
        "jane.k77x@home.example2026",
        "jane.k77x (at) home.example", "jane.k77x[at]home.example", "jane.k77x at home.example",
        "jane.k77x&#64;home.example",
        "jane.k77x&commat;home.example", "jane.k77x\\@home.example", "jane.k77x-40home.example",
        "jane.k77x*40home.example",
        "jane.k77x(comment)@home.example", "jane.k77x＠home.example",
        "jane.k77x\u{200B}@home.example",
        "\"jane.k77x\"@home.example", "/jane.k77x@home.example",
        "https://x.example/?u=jane.k77x@home.example&v=1",
        "mailto:jane.k77x@home.example?subject=x", "jane.k77x @ home.example",
    ])
    func address_inEachForm_isFound(text: String) {
        #expect(Self.found(text).contains("jane.k77x|home.example"), "\(Self.found(text))")
    }

    @Test func address_encoded_isFoundInItsReading() {
        #expect(
            Self.found("jane.k77x%40home.example", lens: .percent) == ["jane.k77x|home.example"])
        #expect(
            Self.found("jane.k77x%2540home.example", lens: .percent) == ["jane.k77x|home.example"])
        #expect(Self.found("jane.k77x=40home.example", lens: .equals) == ["jane.k77x|home.example"])
        #expect(
            Self.found("jane.k7=\r\n7x@home.example", lens: .equals) == ["jane.k77x|home.example"])
        #expect(
            Self.found("jane.k77x<wbr>@home.example", lens: .tags) == ["jane.k77x|home.example"])
        #expect(
            Self.found("jane.k77x%40home.example") == []
                && Self.found("jane.k77x=40home.example") == [])
    }

    /// A word in another cell does not belong to a domain.
    @Test func address_besideABlock_endsThere() {
        #expect(
            Self.found("<td>jane.k77x@home.example</td><td>next</td>", lens: .tags) == [
                "jane.k77x|home.example"
            ])
        #expect(
            Self.found("<b>Jane</b><br>jane.k77x@home.example", lens: .tags) == [
                "jane.k77x|home.example"
            ])
    }

    @Test func address_withinAnother_isFoundToo() {
        #expect(
            Self.found("bounce-jane.k77x=home.example@list.example").contains(
                "jane.k77x|home.example"))
        #expect(
            Self.found("SRS0=ab12=cd=home.example=jane.k77x@relay.test").contains(
                "jane.k77x|home.example"))
        #expect(Self.found("E-Mailjane.k77x@home.example").contains("jane.k77x|home.example"))
        #expect(Self.found("u003cjane.k77x@home.example").contains("jane.k77x|home.example"))
    }

    @Test func address_brokenByAProgram_isFoundWhole() {
        let line = String(repeating: "word ", count: 13)
        #expect(
            Self.found("> \(line)jane.k\r\n> 77x@home.example").contains("jane.k77x|home.example"))
        #expect(Self.found("\(line)jane.k77x@home.exam\r\nple").contains("jane.k77x|home.example"))
        #expect(
            Self.found("Regards\r\njane.k77x@home.example\r\nTel") == ["jane.k77x|home.example"])
    }

    @Test func longerDomain_thatExists_isTheWholeOne() {
        #expect(Self.found("jane.k77x@home.example.org") == ["jane.k77x|home.example.org"])
        #expect(Self.found("jane.k77x@mail.home.example") == ["jane.k77x|mail.home.example"])
        #expect(Self.found("jane@bücher.example").contains("jane|bücher.example"))
        #expect(Self.found("jane@localhost") == ["jane|localhost"])
    }

    @Test(arguments: [
        "image001.png@01D9ABCD.12345678", "react@18.2.0", "see you @ 10:15", "a = b, c == d",
        "x=1;y=2", "Thanks\r\n@anna-b",
        "https://medium.com/@name", "charset=utf-8", "ref:_00Di0abcD._5001Y1ExamP:ref", "[#123]",
        "{#HS:2601234567-123456#}",
        "width=100%", "50% at home", "a@1", "@", "@@@", "=40", "%40",
    ])
    func text_withoutAnAddress_hasNone(text: String) {
        #expect(Self.found(text) == [], "\(Self.found(text))")
    }

    @Test(arguments: [
        "@", "a@", "a@b.", "a@b.c", "=", "a=b.com", "-40", "a.com=", "a@\r\n", "%", "(at)", "\"@",
        "x at y.com ", "a(b)@", "<b>@",
        "aaaa-40a.com",
    ])
    func work_onHostileText_isLinear(unit: String) {
        func steps(_ count: Int, _ lens: DecodingPass) -> Int {
            let octets = Array(String(repeating: unit, count: count).utf8)
            return octets.withUnsafeBufferPointer { buffer in
                let window = DecodedWindow(foldsUnicode: true, capacity: octets.count + 1)
                window.read(buffer, from: 0, to: buffer.count, lens: lens)
                var finder = AddressFinder(window, of: buffer, lens: lens)
                finder.forEach(in: 0..<buffer.count) { _ in }
                return finder.steps
            }
        }
        for lens in [[], DecodingPass.tags] {
            let (one, ten) = (steps(1_000, lens), steps(10_000, lens))
            #expect(
                ten <= 11 * one + 2_000 && ten <= 10_000 * unit.utf8.count * 600, "\(one) \(ten)")
        }
    }
}
