// Text files as editors write them.

import Support
import Testing

@Suite struct PlainTextTests {
    @Test(
        arguments: [
            ([0xEF, 0xBB, 0xBF, 0x61], "a"), ([0x61, 0x0D, 0x0A], "a\r\n"), ([], ""),
            ([0xEF, 0xBB, 0xBF], ""),
            ([0xC3, 0xA9], "é"), ([0x61, 0xEF, 0xBB, 0xBF], "a\u{FEFF}"),
        ] as [([UInt8], String)])
    func read_text_isWithoutItsMark(octets: [UInt8], text: String) throws {
        #expect(try PlainText.read(octets).utf8.elementsEqual(text.utf8))
    }

    @Test(
        arguments: [
            (
                [0x61, 0x0A, 0xC3, 0xA9, 0xE9, 0x0A],
                "line 2, column 2: the text is not UTF-8: save it as UTF-8"
            ),
            ([0xE9], "line 1, column 1: the text is not UTF-8: save it as UTF-8"),
            (
                [0x61, 0x62, 0x63, 0x64, 0x65, 0x00],
                "line 1, column 6: an octet 0 (NUL), which text cannot contain"
            ),
            ([0xFF, 0xFE, 0x61, 0x00], "the text is UTF-16 or UTF-32: save it as UTF-8"),
            ([0xFE, 0xFF, 0x00, 0x61], "the text is UTF-16 or UTF-32: save it as UTF-8"),
            ([0x61, 0x00, 0x62, 0x00], "the text is UTF-16 or UTF-32: save it as UTF-8"),
            ([0x00, 0x61, 0x00, 0x62], "the text is UTF-16 or UTF-32: save it as UTF-8"),
            (
                [0x1F, 0x8B, 0x08, 0x00],
                "it is compressed, or a spreadsheet: give its text, or export the spreadsheet as CSV"
            ),
            (
                [0x50, 0x4B, 0x03, 0x04],
                "it is compressed, or a spreadsheet: give its text, or export the spreadsheet as CSV"
            ),
            (
                [0xFF, 0xFE, 0x00, 0x00, 0x61, 0x00, 0x00, 0x00],
                "the text is UTF-16 or UTF-32: save it as UTF-8"
            ),
        ] as [([UInt8], String)])
    func read_noText_isRefusedWithItsPlace(octets: [UInt8], words: String) {
        let fault = #expect(throws: PlainTextFault.self) { try PlainText.read(octets) }
        #expect(fault?.description == words)
    }

    @Test func count_ofOneAndMany_isInWords() {
        #expect(
            Count.text(1, "entry", "entries") == "1 entry" && Count.text(0, "rule") == "0 rules")
        #expect(Count.text(12_345, "line") == "12,345 lines" && Count.text(-1_000) == "-1,000")
    }
}
