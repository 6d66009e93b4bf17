// Generated tokens and JSON documents: accepted ones are valid, and another reader reads the same.

import Foundation
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct GeneratedTokenTests {
    private static let (seed, count) = Generated.settings(count: 1_500)

    /// Values near a valid one, and far from any.
    private static func value(_ random: inout SeededGenerator) -> JSONValue {
        let texts = [
            "", TestIssuer.iss, TestIssuer.iss + "/", TestIssuer.iss.uppercased(),
            TestIssuer.audience, TestIssuer.audience + " ",
            "null", "\u{7}",
            "com.example.other", String(repeating: "a", count: 300),
        ]
        let numbers: [Int64] = [
            0, -1, 1, TestIssuer.now, TestIssuer.now - 59, TestIssuer.now - 61, TestIssuer.now + 59,
            TestIssuer.now + 61, .max,
            .min + 1,
        ]
        switch Int.random(in: 0..<7, using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2, 3: return .integer(numbers[Int.random(in: 0..<numbers.count, using: &random)])
        case 4, 5: return .string(texts[Int.random(in: 0..<texts.count, using: &random)])
        default:
            return .array(
                (0..<Int.random(in: 0...2, using: &random)).map { _ in
                    .string(texts[Int.random(in: 0..<texts.count, using: &random)])
                })
        }
    }

    /// The result of another program's reader for a payload: whether every relevant claim is right.
    private static func isRight(_ token: CompactJWS) -> Bool {
        guard
            let claims = try? JSONSerialization.jsonObject(with: Data(token.payload))
                as? [String: Any]
        else { return false }
        func time(_ name: String) -> Double? { (claims[name] as? NSNumber)?.doubleValue }
        let audiences =
            (claims["aud"] as? [String]) ?? (claims["aud"] as? String).map { [$0] } ?? []
        guard claims["iss"] as? String == TestIssuer.iss, audiences == [TestIssuer.audience],
            let subject = claims["sub"] as? String,
            (1...255).contains(subject.utf8.count), let expiry = time("exp"),
            let issued = time("iat")
        else { return false }
        // The default leeway is 60 s.
        return expiry > Double(TestIssuer.now) - 60 && issued <= Double(TestIssuer.now) + 60
    }

    /// Claims changed at random and signed with the right key: accepted ones have all required
    /// claims.
    @Test func token_randomClaims_isTakenOnlyIfRight() async throws {
        let issuer = try await TestIssuer()
        let keys = try await issuer.keys()
        var random = SeededGenerator(seed: Self.seed)
        let names = [
            "iss", "aud", "sub", "exp", "iat", "nbf", "nonce", "azp", "email", "email_verified",
            "crit", "is_private_email",
            "auth_time",
        ]
        var taken = 0
        for number in 0..<Self.count {
            let text = try issuer.token { claims in
                for _ in 0..<Int.random(in: 0...2, using: &random) {
                    let name = names[Int.random(in: 0..<names.count, using: &random)]
                    claims[name] =
                        Int.random(in: 0..<6, using: &random) == 0 ? nil : Self.value(&random)
                }
            }
            let token = try CompactJWS(text)
            let claims = try? TokenChecks.verify(
                token, issuer: TestIssuer.configuration(), keys: keys,
                audience: TestIssuer.audience, nonce: nil,
                now: TestIssuer.now)
            guard claims != nil else { continue }
            taken += 1
            #expect(
                Self.isRight(token),
                "seed \(Self.seed), number \(number): \(String(decoding: token.payload, as: UTF8.self))"
            )
        }
        #expect(taken > Self.count / 10, "most of the changes hit a claim that may be anything")
    }

    /// A valid token, reassembled without the key: never accepted.
    @Test func token_changedAfterSigning_isRefused() async throws {
        let (issuer, other) = (try await TestIssuer(), try await TestIssuer())
        let keys = try await issuer.keys()
        var random = SeededGenerator(seed: Self.seed)
        let good = try issuer.token().split(separator: ".").map(String.init)
        let strange = try other.token().split(separator: ".").map(String.init)
        let header = try StrictJSON.parseObject(
            Base64URL.decode(Array(good[0].utf8)) ?? [], limit: 1_000)
        let extras: [(String, JSONValue?)] = [
            ("alg", "none"), ("alg", "HS256"), ("alg", "ES384"), ("alg", nil), ("kid", nil),
            ("kid", ""),
            ("kid", "../../dev/null"), ("crit", .array(["exp"])),
            ("b64", .bool(false)), ("jku", "https://evil.example/"),
            ("x5u", "https://evil.example/"), ("jwk", .object([:])),
            ("x5c", .array([])),
            ("typ", "JOSE+JSON"), ("zip", "DEF"), ("alg", "es256"),
        ]
        for number in 0..<Self.count {
            var parts = good
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                var changed = header
                let (name, value) = extras[Int.random(in: 0..<extras.count, using: &random)]
                changed[name] = value
                parts[0] = Base64URL.encode(JSONValue.object(changed).octets)
            case 1: parts[0] = strange[0]
            case 2:
                parts[1] = strange[1] == parts[1] ? parts[1] + "AA" : strange[1]
                parts[2] = strange[2]
            case 3:
                parts[2] =
                    ["", "AA", String(repeating: "A", count: 86), strange[2]][
                        Int.random(in: 0..<4, using: &random)]
            case 4:
                parts.insert(
                    parts[Int.random(in: 0..<3, using: &random)],
                    at: Int.random(in: 0...3, using: &random))
            case 5: parts.remove(at: Int.random(in: 0..<3, using: &random))
            case 6:
                let place = Int.random(in: 0..<3, using: &random)
                parts[place] +=
                    ["=", "==", "\n", " ", "A", "%", "\0", ".x"][
                        Int.random(in: 0..<8, using: &random)]
            default:
                let place = Int.random(in: 0..<3, using: &random)
                var octets = Array(parts[place].utf8)
                let (from, to) = (
                    Int.random(in: 0..<octets.count, using: &random),
                    Int.random(in: 0..<octets.count, using: &random)
                )
                octets.swapAt(from, to)
                if octets == Array(parts[place].utf8) { octets.removeLast() }
                parts[place] = String(decoding: octets, as: UTF8.self)
            }
            let text = parts.joined(separator: ".")
            guard text != good.joined(separator: ".") else { continue }
            let verified = (try? CompactJWS(text)).flatMap { token in
                try? TokenChecks.verify(
                    token, issuer: TestIssuer.configuration(), keys: keys,
                    audience: TestIssuer.audience, nonce: nil,
                    now: TestIssuer.now)
            }
            #expect(verified == nil, "seed \(Self.seed), number \(number): \(text)")
        }
    }
}

@Suite(.blocking) struct GeneratedJSONTests {
    private static let (seed, count) = Generated.settings(count: 3_000)

    private static func text(_ random: inout SeededGenerator) -> String {
        let scalars: [Unicode.Scalar] = [
            "a", "Z", "0", " ", "\"", "\\", "/", "\n", "\t", "\u{1}", "\u{7F}", "é", "€", "😀",
            "\u{202E}", "\u{2028}",
        ]
        return String(
            String.UnicodeScalarView(
                (0..<Int.random(in: 0...6, using: &random)).map { _ in
                    scalars[Int.random(in: 0..<scalars.count, using: &random)]
                }))
    }

    private static func value(_ depth: Int, _ random: inout SeededGenerator) -> JSONValue {
        switch Int.random(in: 0..<(depth > 4 ? 4 : 6), using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2:
            return .integer(
                Int64.random(in: -1_000_000_000_000...1_000_000_000_000, using: &random))
        case 3: return .string(text(&random))
        case 4:
            return .array(
                (0..<Int.random(in: 0...3, using: &random)).map { _ in value(depth + 1, &random) })
        default:
            var object: JSONObject = [:]
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                object[text(&random)] = value(depth + 1, &random)
            }
            return .object(object)
        }
    }

    /// The value in one of many spellings.
    private static func write(_ value: JSONValue, _ random: inout SeededGenerator) -> String {
        func space() -> String {
            ["", "", " ", "\n", "\t \r\n"][Int.random(in: 0..<5, using: &random)]
        }
        switch value {
        case .array(let items):
            var parts: [String] = []
            for item in items { parts.append(space() + write(item, &random) + space()) }
            return "[" + (parts.isEmpty ? space() : parts.joined(separator: ",")) + "]"
        case .object(let object):
            var parts: [String] = []
            for member in object.members {
                parts.append(
                    space() + write(.string(member.name), &random) + space() + ":" + space()
                        + write(member.value, &random)
                        + space())
            }
            return "{" + (parts.isEmpty ? space() : parts.joined(separator: ",")) + "}"
        case .string(let text):
            var out = "\""
            for scalar in text.unicodeScalars {
                let mustEscape = scalar.value < 0x20 || scalar == "\"" || scalar == "\\"
                guard mustEscape || Int.random(in: 0..<3, using: &random) == 0 else {
                    out.unicodeScalars.append(scalar)
                    continue
                }
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16, uppercase: Bool.random(using: &random))
                    out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            }
            return out + "\""
        default: return value.text
        }
    }

    @Test func json_randomSpelling_isReadAsItsValue() throws {
        var random = SeededGenerator(seed: Self.seed)
        for number in 0..<Self.count {
            let value = Self.value(0, &random)
            let text = Self.write(value, &random)
            #expect(
                (try? StrictJSON.parse(Array(text.utf8), limit: 1 << 20)) == value,
                "seed \(Self.seed), number \(number): \(text.debugDescription)")
            #expect((try? StrictJSON.parse(value.octets, limit: 1 << 20)) == value)
        }
    }

    /// The system's reader accepts every accepted text, and finds the same number of members and
    /// items.
    @Test func json_randomOctets_isReadAsByFoundation() throws {
        var random = SeededGenerator(seed: Self.seed &+ 1)
        let pieces =
            Array("{}[]\",:\\u0\u{1}e-+.9truefalsn /*'".utf8) + [
                0xC3, 0xA9, 0xFF, 0xEF, 0xBB, 0xBF,
            ]
        var taken = 0
        for number in 0..<Self.count {
            var octets = Array(Self.write(Self.value(0, &random), &random).utf8)
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let place = Int.random(in: 0...octets.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    octets.insert(
                        pieces[Int.random(in: 0..<pieces.count, using: &random)], at: place)
                case 1 where place < octets.count: octets.remove(at: place)
                case 2 where place < octets.count:
                    octets[place] = pieces[Int.random(in: 0..<pieces.count, using: &random)]
                default: octets += octets[place...]
                }
            }
            // Beyond a double's range that reader fails.
            guard let value = try? StrictJSON.parse(octets, limit: 1 << 20),
                !octets.contains(UInt8(ascii: "e")) || !Self.hasExponent(value)
            else { continue }
            taken += 1
            let other = try? JSONSerialization.jsonObject(
                with: Data(octets), options: .fragmentsAllowed)
            #expect(
                other.map(Self.size) == Self.size(value),
                "seed \(Self.seed), number \(number): \(String(decoding: octets, as: UTF8.self).debugDescription)"
            )
            #expect((try? StrictJSON.parse(value.octets, limit: 1 << 20)) == value)
        }
        #expect(taken > Self.count / 10)
    }

    private static func hasExponent(_ value: JSONValue) -> Bool {
        switch value {
        case .number(let number): number.text.lowercased().contains("e")
        case .array(let items): items.contains(where: hasExponent)
        case .object(let object): object.members.contains { hasExponent($0.value) }
        default: false
        }
    }

    private static func size(_ value: JSONValue) -> Int {
        switch value {
        case .array(let items): 1 + items.map(size).reduce(0, +)
        // Names that are canonically equivalent are one to Swift's dictionary.
        case .object(let object): 1 + object.members.map { size($0.value) }.reduce(0, +)
        default: 1
        }
    }

    private static func size(_ value: Any) -> Int {
        switch value {
        case let items as [Any]: 1 + items.map(size).reduce(0, +)
        case let object as [String: Any]: 1 + object.values.map(size).reduce(0, +)
        default: 1
        }
    }
}
