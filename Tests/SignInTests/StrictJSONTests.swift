// The strict reader of JSON, the numbers, the writer and base64url.

import Foundation
import Support
import TestSupport
import Testing

@Suite(.blocking) struct StrictJSONTests {
    private func parse(_ text: String) -> JSONValue? {
        try? StrictJSON.parse(Array(text.utf8), limit: 65_536)
    }

    @Test func json_ofRFC8259_isRead() throws {
        let text =
            #" { "a" : [ 1 , -0 , 2.5e+3 , true , false , null , "" ] , "b" : { } , "\u00e9\n\"\\\/" : "\ud83d\ude00" } "#
        let object = try #require(parse(text)?.object)
        #expect(object.members.map(\.name) == ["a", "b", "é\n\"\\/"])
        #expect(object["a"]?.array?.count == 7)
        #expect(object["a"]?.array?[2].number?.integer == 2500)
        #expect(object["é\n\"\\/"]?.string == "😀")
        #expect(object["b"]?.object?.members.isEmpty == true)
    }

    @Test(arguments: [
        "", " ", "{", "}", "[1,]", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "{'a':1}", "[1 2]", "nul",
        "nulll", "tru", "True", "+1",
        "01",
        "-", "-a", "1.", ".5", "1e", "1e+", "0x1", "NaN", "Infinity", "\"", "\"\\x\"", "\"\\u12\"",
        "\"\\u12g4\"", "\"\t\"",
        "1 1",
        "[]]", "\u{FEFF}1", "//", "[1/**/]", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"",
        "\"\\u0000\"",
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"\\u0061\":1}", "\u{0C}1", "\u{A0}1", "[\"a\":1]", "{1:1}", "\"\\ud83d\\u\"",
        "\"\\uD83D\\uD83D\"",
    ])
    func json_notOfRFC8259_isRefused(_ text: String) {
        #expect(parse(text) == nil)
    }

    @Test func memberName_canonicallyEquivalent_differs() throws {
        // "é" in two forms that Unicode calls equivalent, and Swift equal.
        let object = try #require(parse("{\"\u{E9}\":1,\"e\u{301}\":2}")?.object)
        #expect(object["\u{E9}"]?.number?.integer == 1)
        #expect(object["e\u{301}"]?.number?.integer == 2)
        // U+212A is canonically K.
        #expect(try #require(parse("{\"\u{212A}\":1}")?.object)["K"] == nil)
    }

    /// Text that Unicode calls equivalent is a different text.
    @Test func equality_canonicallyEquivalentTexts_differ() throws {
        #expect(parse("\"K\"") != parse("\"\u{212A}\""))
        #expect(parse("{\"\u{E9}\":1}") != parse("{\"e\u{301}\":1}"))
        #expect(parse("[{\"a\":\"\u{E9}\"}]") == parse("[ {\"a\" : \"\\u00e9\"} ]"))
        #expect(Set(["K", "\u{212A}", "K"].map { JSONValue.string($0) }).count == 2)
    }

    @Test func memberName_ofOver1024Octets_isRefused() {
        #expect(parse("{\"\(String(repeating: "a", count: 1_024))\":1}") != nil)
        #expect(parse("{\"\(String(repeating: "a", count: 1_025))\":1}") == nil)
        #expect(parse("{\"a\(String(repeating: "\u{301}", count: 30_000))\":1}") == nil)
        #expect(parse("{\"a\":\"\(String(repeating: "\u{301}", count: 30_000))\"}") != nil)
    }

    /// 64 scalars, not 64 of what a reader sees.
    @Test func pointer_nameOfManyMarks_isCutByScalars() throws {
        struct Body: Decodable { let a: Int? }
        let name = "b~/\r\n" + String(repeating: "\u{301}", count: 500)
        let value = JSONValue.object([name: .integer(1)])
        #expect(StrictDecoder.escaped(name).unicodeScalars.count == 66)
        #expect(StrictDecoder.escaped(name).utf8.starts(with: "b~0~1\u{FFFD}\u{FFFD}".utf8))
        do {
            _ = try StrictDecoder.decode(Body.self, from: value)
            Issue.record("an unknown member was taken")
        } catch let error as JSONShapeError {
            #expect(error.pointer == "/" + StrictDecoder.escaped(name))
        }
    }

    @Test func nesting_overLimit_isRefused() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(parse(nested(StrictJSON.maximumDepth)) != nil)
        #expect(parse(nested(StrictJSON.maximumDepth + 1)) == nil)
        #expect(parse(nested(30_000)) == nil)
    }

    @Test func length_overLimit_isRefused() {
        #expect(throws: JSONError.self) { try StrictJSON.parse(Array("[1,2]".utf8), limit: 4) }
        #expect(throws: Never.self) { try StrictJSON.parse(Array("[1,2]".utf8), limit: 5) }
    }

    @Test func error_ofSecretText_repeatsNothing() {
        for text in ["{\"secretname\":1,\"secretname\":2}", "\"secret\\x\"", "secret"] {
            do {
                _ = try StrictJSON.parse(Array(text.utf8), limit: 100)
                Issue.record("\(text) was taken")
            } catch {
                #expect(!"\(error)".contains("secret"))
            }
        }
    }

    @Test(
        arguments: [
            ("0", 0), ("-0", 0), ("1e1", 10), ("10.0", 10), ("1.5e1", 15), ("100e-2", 1),
            ("0.1e1", 1),
            ("9223372036854775807", Int64.max),
            ("0e999999999999", 0), ("-12", -12), ("922337203685477580.7e1", Int64.max),
        ] as [(String, Int64)])
    func number_wholeInAnyForm_isInteger(_ text: String, _ value: Int64) {
        #expect(parse(text)?.number?.integer == value)
    }

    @Test(arguments: [
        "9223372036854775808", "1e19", "1e400", "0.5", "-1.5", "1e-1", "1e99999999999999999999",
        "123456789e-3",
    ])
    func number_notWholeOrTooLarge_isNoInteger(_ text: String) {
        #expect(parse(text)?.number != nil)
        #expect(parse(text)?.number?.integer == nil)
    }

    @Test func number_fraction_roundsExactly() {
        for (text, floor, ceiling) in [
            ("1.5", 1, 2), ("-1.5", -2, -1), ("2", 2, 2), ("0.000001", 0, 1), ("-0.000001", -1, 0),
            ("1e-60", 0, 1),
            ("1790000000.9999999999999999999", 1_790_000_000, 1_790_000_001),
        ] as [(String, Int64, Int64)] {
            #expect(parse(text)?.number?.floor == floor, "\(text)")
            #expect(parse(text)?.number?.ceiling == ceiling, "\(text)")
        }
        #expect(parse("1e400")?.number?.ceiling == nil)
        #expect(parse(String(repeating: "9", count: 65)) == nil)
    }

    @Test func json_written_isReadAlike() throws {
        let value: JSONValue = .object([
            "a\u{1}\"\\\n": .array([.null, .bool(true), .integer(.min + 1), .string("é😀\u{7F}\t/")]
            ), "b": .object([:]),
        ])
        #expect(try StrictJSON.parse(value.octets, limit: 1000) == value)
        #expect(try JSONSerialization.jsonObject(with: Data(value.octets)) is [String: Any])
    }

    /// Foundation's reader accepts every text that the strict reader accepts, and both give the
    /// same text.
    @Test func json_mutated_isReadByFoundationToo() throws {
        var random = SeededGenerator(seed: 71)
        let seeds = [
            #"{"alg":"ES256","kid":"ec-1","n":[1,2.5,-3e4,{"x":null}],"é":"\u00e9\ud83d\ude00"}"#,
            "[true,false,null,0,\"\\\\\"]",
            #"{"iss":"a","aud":["b"],"exp":1790000000,"email_verified":"true"}"#,
        ].map { Array($0.utf8) }
        var taken = 0
        for _ in 0..<60_000 {
            var octets = seeds[Int.random(in: 0..<seeds.count, using: &random)]
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0..<octets.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: octets[place] = UInt8.random(in: 0...255, using: &random)
                case 1 where octets.count > 1: octets.remove(at: place)
                default:
                    octets.insert(
                        Array("{}[]\",:\\u0e+-.1 ".utf8).randomElement(using: &random) ?? 0x20,
                        at: place)
                }
            }
            guard let value = try? StrictJSON.parse(octets, limit: 65_536) else { continue }
            taken += 1
            #expect(try StrictJSON.parse(value.octets, limit: 65_536) == value)
            // Foundation refuses numbers beyond a double, but no other text that we accept.
            if !hasHugeNumber(value) {
                #expect(
                    (try? JSONSerialization.jsonObject(
                        with: Data(octets), options: .fragmentsAllowed)) != nil,
                    "\(String(decoding: octets, as: UTF8.self))")
            }
        }
        #expect(taken > 2000)
    }

    private func hasHugeNumber(_ value: JSONValue) -> Bool {
        switch value {
        case .number(let number):
            Double(number.text).map { !$0.isFinite || ($0 != 0 && abs($0) < 1e-300) } ?? true
        case .array(let elements): elements.contains(where: hasHugeNumber)
        case .object(let object): object.members.contains { hasHugeNumber($0.value) }
        default: false
        }
    }

    @Test func base64URL_anyOctets_hasOneForm() throws {
        var random = SeededGenerator(seed: 3)
        for length in 0..<70 {
            let octets = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            let text = Base64URL.encode(octets)
            #expect(Base64URL.decode(text.utf8) == octets)
            let standard = Data(octets).base64EncodedString().replacingOccurrences(
                of: "+", with: "-"
            )
            .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
            #expect(text == standard)
        }
        // Of all texts of up to three characters, each that decodes is the encoding of its octets.
        let characters = Array("ABgwxQ_-=+/ \n09z".utf8)
        for a in characters {
            for b in characters {
                for c in characters {
                    for text in [[a], [a, b], [a, b, c]] {
                        guard let octets = Base64URL.decode(text) else { continue }
                        #expect(Base64URL.encode(octets) == String(decoding: text, as: UTF8.self))
                    }
                }
            }
        }
    }
}
