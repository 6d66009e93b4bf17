// RFC 4180: each case read as a whole, and octet by octet.

import Administration
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct CSVParserTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let text: String
        let expected: [String]
        var testDescription: String { text.debugDescription }

        init(_ text: String, _ expected: String...) {
            self.text = text
            self.expected = expected
        }
    }

    /// Records as `line:field|field`, defects as `line!words`.
    static let cases: [Case] = [
        Case("a,b\r\nc,d\r\n", "1:a|b", "2:c|d"),
        Case("a,b\nc,d", "1:a|b", "2:c|d"),
        Case("", ""),
        Case("\r\n\n  \n", ""),
        Case("a,\n,b\n,\n", "1:a|", "2:|b"),
        Case("\"\"\n", ""),
        Case("a,b\n,,\n , \n", "1:a|b"),
        Case(" a ,\tb\n \"c \" ,d\n", "1:a|b", "2:c |d"),
        Case("a;b\n1,5;x\n", "1:a|b", "2:1,5|x"),
        Case("\r\n\na;b\nc;d\n", "3:a|b", "4:c|d"),
        Case("\u{A0}a\u{A0} ,b\u{A0}\n", "1:a|b"),
        Case("a\tb\nc d\te\n", "1:a|b", "2:c d|e"),
        Case("sep=;\r\na;b\n", "2:a|b"),
        Case("sep=,\na;b,c\n", "2:a;b|c"),
        Case("\"a;b\",c\nd;e,f\n", "1:a;b|c", "2:d;e|f"),
        Case("\"a,b\",\"say \"\"hi\"\"\"\r\nx,y\r\n", "1:a,b|say \"hi\"", "2:x|y"),
        Case("\"two\r\nlines\",z\nnext,1\n", "1:two\r\nlines|z", "3:next|1"),
        Case("\u{FEFF}a,b\n", "1:a|b"),
        Case("\u{FEFF}\"a\",b\n", "1:a|b"),
        Case("a b\"c,d\ne,f\n", "1!does not begin with one", "2:e|f"),
        Case("\"a\"b,c\ne,f\n", "1!after the closing", "2:e|f"),
        Case("\"a\" ,c\ne,f\n", "1:a|c", "2:e|f"),
        Case("a\rb,c\ne,f\n", "1!CR without LF", "2:e|f"),
        Case("a,b\r", "1!CR without LF"),
        Case("a\n\"open,b\nc,d\n", "1:a", "2!mark of line 2 is not closed"),
        Case("ünï,名前\n", "1:ünï|名前"),
    ]

    private func parse(_ octets: [UInt8], piece: Int) -> [CSVRecord] {
        var parser = CSVParser()
        var records: [CSVRecord] = []
        var start = 0
        while start < octets.count {
            let end = min(start + piece, octets.count)
            parser.push(octets[start..<end]) { records.append($0) }
            start = end
        }
        parser.finish { records.append($0) }
        return records
    }

    @Test(arguments: cases) func read_everyCase_returnsRecordsOrDefects(_ test: Case) {
        let expected = test.expected == [""] ? [] : test.expected
        for piece in [1, 2, 3, 1000] {
            let records = parse(Array(test.text.utf8), piece: piece)
            #expect(records.count == expected.count, "\(records)")
            for (record, wanted) in zip(records, expected) {
                if let mark = wanted.firstIndex(of: "!"),
                    wanted.firstIndex(of: ":").map({ $0 > mark }) ?? true
                {
                    #expect(record.line == Int(wanted[..<mark]))
                    #expect(
                        record.defect?.contains(wanted[wanted.index(after: mark)...]) == true,
                        "\(record)")
                } else {
                    #expect("\(record.line):\(record.fields.joined(separator: "|"))" == wanted)
                    #expect(record.defect == nil)
                }
            }
        }
    }

    @Test func read_utf16_isOneRefusal() {
        for octets in [
            [0xFF, 0xFE, 0x61, 0x00, 0x0A, 0x00, 0x62, 0x00],
            [0x61, 0x00, 0x0A, 0x00, 0x62, 0x00, 0x0A, 0x00],
        ]
            as [[UInt8]]
        {
            for piece in [1, 3, 100] {
                let records = parse(octets, piece: piece)
                #expect(
                    records.count == 1 && records[0].defect?.contains("UTF-16") == true,
                    "\(records)")
            }
        }
    }

    @Test func fields_emptyOnesAtTheEnd_areNoFields() throws {
        let record = try #require(parse(Array("a,b,,".utf8), piece: 99).first)
        #expect(record.fields(2) == ["a", "b"] && record.fields(4)?.count == 4)
        #expect(record.fields(1) == nil && record.fields(5) == nil)
        #expect(
            parse(Array("Value,Expires,".utf8), piece: 99).first?.columnNames == [
                "value", "expires",
            ])
    }

    @Test func read_invalidUTF8_isDefectOfItsRecordOnly() {
        let records = parse([0x61, 0xFF, 0x2C, 0x62, 0x0A, 0x63, 0x0A], piece: 7)
        #expect(
            records.map { $0.defect?.hasPrefix("field 1: the text is not UTF-8") } == [true, nil])
        #expect(records.last?.fields == ["c"])
    }

    @Test func read_unclosedQuotationMark_endsAtRecordLimit() throws {
        let octets =
            Array("a,\"".utf8) + [UInt8](repeating: 0x78, count: 3 * CSVParser.maximumRecord)
            + Array("\nb,c\n".utf8)
        let records = parse(octets, piece: 1000)
        #expect(records.count == 2)
        #expect(
            records.first?.defect?.contains("mark of line 1 is not closed within 65536 octets")
                == true)
        #expect(records.last?.line == 2)
        #expect(records.last?.fields == ["b", "c"])
        #expect(records.last?.defect == nil)
    }
}
