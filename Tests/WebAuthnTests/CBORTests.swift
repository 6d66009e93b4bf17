// The CBOR reader: public vectors, every cut, random octets.

import Foundation
import PasskeyTesting
import Support
import TestSupport
import Testing
import WebAuthn

@Suite(.blocking) struct CBORTests {
    private static func read(_ hex: String, _ form: CBORReader.Form = .any) throws -> CBORValue {
        try CBORReader.value(of: try #require(Hex.decode(hex.utf8)), form: form)
    }

    private static func file(_ name: String) throws -> Any {
        try JSONSerialization.jsonObject(
            with: Data(contentsOf: Folders.conformance.appending(path: "cbor/\(name)")))
    }

    /// Whether a value equals its JSON form.
    private static func isSame(_ value: CBORValue, as json: Any) -> Bool {
        switch (value, json) {
        case (.text(let text), let other as String): return text == other
        case (.array(let items), let others as [Any]):
            return items.count == others.count
                && zip(items, others).allSatisfy { isSame($0, as: $1) }
        case (.map(let pairs), let others as [String: Any]):
            return pairs.count == others.count
                && pairs.allSatisfy { pair in
                    let name = pair.key.text ?? pair.key.integer.map(String.init) ?? ""
                    return others[name].map { isSame(pair.value, as: $0) } ?? false
                }
        case (.null, is NSNull): return true
        case (.bool(let flag), let other as NSNumber): return flag == other.boolValue
        case (.unsigned(let number), let other as NSNumber): return NSNumber(value: number) == other
        case (.negative(let number), let other as NSNumber):
            return -1 - Double(number) == other.doubleValue
        // Foundation reads 3.4028234663852886e+38 as a decimal number.
        case (.float(let number), let other as NSNumber):
            return abs(number - other.doubleValue) <= abs(number) * 1e-15
        default: return false
        }
    }

    @Test(.enabled(if: Folders.hasConformance, Folders.skipped))
    func cbor_examplesOfRFC8949_isRead() throws {
        let items = try #require(try Self.file("appendix_a.json") as? [[String: Any]])
        var compared = 0
        for item in items {
            let hex = try #require(item["hex"] as? String)
            // Below 32 a simple value has one octet: an erratum of the collection.
            if hex == "f818" {
                #expect(throws: CBORError.self) { try Self.read(hex) }
                continue
            }
            let value = try Self.read(hex)
            // JSON has no tags: bignums are numbers there.
            guard let decoded = item["decoded"], !"\(value.kind)".contains("tag") else { continue }
            compared += 1
            #expect(Self.isSame(value, as: decoded), "\(hex)")
        }
        #expect(compared > 50)
    }

    @Test(.enabled(if: Folders.hasConformance, Folders.skipped)) func cbor_notWellFormed_isRefused()
        throws
    {
        var texts = try #require(try Self.file("fail.json") as? [[String: Any]]).compactMap {
            $0["hex"] as? String
        }
        for name in ["rfc8949-appendix-f1-not-well-formed.json", "qcbor-not-well-formed.json"] {
            let items = try #require(
                (try Self.file(name) as? [String: Any])?["items"] as? [[String: Any]])
            texts += items.compactMap { $0["hex"] as? String }
        }
        #expect(texts.count > 850)
        for hex in texts { #expect(throws: CBORError.self, "\(hex)") { try Self.read(hex) } }
    }

    /// Encodings that are always refused, and those that are refused only from authenticators.
    @Test(arguments: [
        ("a201010102", false, false), ("a20101180102", false, false),
        ("a2616101616102", false, false), ("1817", true, false),
        ("190017", true, false), ("1b0000000000000001", true, false), ("580100", true, false),
        ("5f4100ff", true, false),
        ("9f01ff", true, false), ("bf0101ff", true, false), ("a220010102", true, true),
        ("62c328", false, false),
        ("63eda080", false, false), ("7f61c361a9ff", false, false),
        ("818181818181818181818181818181818100", false, false),
        ("9b00000000ffffffff", false, false), ("5bffffffffffffffff", false, false),
        ("bb7fffffffffffffff", false, false),
        ("", false, false), ("0000", false, false), ("c249010000000000000000", true, true),
        ("3bffffffffffffffff", true, true),
        ("1bffffffffffffffff", true, true), ("f97e00", true, true), ("f7", true, true),
        ("f800", false, false),
        ("f81f", false, false), ("f820", true, true), ("1c", false, false), ("ff", false, false),
        ("1f", false, false),
    ])
    func cbor_everyForm_isTakenWhereAllowed(
        _ hex: String, _ isValid: Bool, _ isDefinite: Bool
    ) throws {
        #expect(((try? Self.read(hex)) != nil) == isValid)
        #expect(((try? Self.read(hex, .definite)) != nil) == isDefinite)
    }

    @Test func cbor_nestedTooDeeply_isRefused() throws {
        let deepest = String(repeating: "81", count: CBORReader.maximumDepth) + "00"
        #expect(try Self.read(deepest).array?.count == 1)
        #expect(
            throws: CBORError(message: "nested too deeply", offset: CBORReader.maximumDepth + 1)
        ) {
            try Self.read("81" + deepest)
        }
    }

    @Test func cbor_octetsAfterItem_returnsThem() throws {
        let octets: [UInt8] = [0xA1, 0x01, 0x02, 0x99, 0x00]
        let (value, rest) = try CBORReader.firstValue(of: octets[...])
        #expect(value == .map([CBORValue.Pair(key: 1, value: 2)]) && Array(rest) == [0x99, 0x00])
        #expect(throws: CBORError(message: "octets after the item", offset: 3)) {
            try CBORReader.value(of: octets)
        }
    }

    @Test func cbor_wholeNumber_keepsItsValue() throws {
        #expect(try Self.read("3903e7").integer == -1000)
        #expect(try Self.read("1b7fffffffffffffff").integer == .max)
        #expect(try Self.read("3b7fffffffffffffff").integer == .min)
        #expect(try Self.read("1b8000000000000000").integer == nil)
        #expect(CBORValue.integer(.min) == .negative(UInt64(Int64.max)))
    }

    @Test func cbor_valuePrinted_hidesContent() throws {
        #expect("\(try Self.read("63616263"))" == "<CBOR: a text>")
        #expect(String(reflecting: try Self.read("63616263")).contains("abc") == false)
    }

    /// Random octets, and cuts of well-formed ones: an answer or an error, never a trap.
    @Test func cbor_randomOctets_neverTraps() throws {
        var generator = SeededGenerator(seed: 41)
        var isRead = 0
        for _ in 0..<20_000 {
            var octets = (0..<Int.random(in: 0..<40, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            if Bool.random(using: &generator), !octets.isEmpty {
                octets[0] = 0x80 | octets[0] & 0x3F
            }
            for form in [CBORReader.Form.any, .definite]
            where (try? CBORReader.firstValue(of: octets[...], form: form)) != nil {
                isRead += 1
            }
        }
        #expect(isRead > 100)
    }
}
