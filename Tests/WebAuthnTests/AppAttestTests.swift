// Real attestations and assertions, through the lines of --batch, and each with one field broken.

import Foundation
import Support
import TestSupport
import Testing
import WebAuthn

/// Samples as lines.
private enum Samples {
    static func file() throws -> JSONObject {
        let octets = Array(
            try Data(contentsOf: Folders.conformance.appending(path: "app-attest/samples.json")))
        return try StrictJSON.parseObject(octets, limit: 1 << 20)
    }

    static func hex(_ base64: JSONValue?) -> JSONValue {
        .string(
            Hex.encode(base64?.string.flatMap { Data(base64Encoded: $0) }.map(Array.init) ?? []))
    }

    /// DER of a certificate, in hexadecimal.
    static func certificate(_ name: String) throws -> JSONValue {
        let text = try String(
            contentsOf: Folders.conformance.appending(path: "app-attest/\(name).pem"),
            encoding: .utf8)
        return hex(.string(text.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()))
    }

    static func seconds(_ text: JSONValue?) -> Int64? {
        guard let text = text?.string, let date = try? Date(text, strategy: .iso8601) else {
            return nil
        }
        return Int64(date.timeIntervalSince1970)
    }

    static func attestations() throws -> [JSONObject] {
        let root = try certificate("Apple_App_Attestation_Root_CA")
        return try file()["attestations"]?.array?.compactMap(\.object).map { sample in
            var line: JSONObject = [
                "id": sample["id"] ?? .null, "app_id": sample["appId"] ?? .null,
                "environment": sample["environment"] ?? .null,
                "key_id": hex(sample["keyIdBase64"]),
                "attestation": hex(sample["attestationObjectBase64"]),
                "client_data": sample["clientDataHash"] ?? .null, "roots": .array([root]),
            ]
            line["now"] = .integer(seconds(sample["expected"]?.object?["at"]) ?? 0)
            return line
        } ?? []
    }

    /// Those with known client data.
    static func assertions() throws -> [JSONObject] {
        try file()["assertions"]?.array?.compactMap(\.object).filter {
            $0["expected"]?.object?["result"] == "accept"
        }.map {
            sample in
            [
                "id": sample["id"] ?? .null, "app_id": sample["appId"] ?? .null,
                "assertion": hex(sample["assertionBase64"]),
                "public_key": sample["publicKeyX963"] ?? .null,
                "client_data": sample["clientData"]?.object?["hex"] ?? .null,
                "counter": .integer(0),
            ]
        } ?? []
    }

    static func answer(_ line: JSONObject) -> JSONObject {
        AttestationLine.answer(JSONValue.object(line).octets, now: 0) { _ in nil }
    }
}

@Suite(.blocking, .enabled(if: Folders.hasConformance, Folders.skipped))
struct AppAttestConformanceTests {
    private func refused(_ line: JSONObject, _ check: String, _ name: String) {
        let answer = Samples.answer(line)
        #expect(answer["valid"] == .bool(false), "\(name)")
        #expect(
            answer["error"]?.string?.hasPrefix("\(check): ") == true,
            "\(name): \(answer["error"]?.string ?? "")")
    }

    private func flipped(_ value: JSONValue?, at place: Int) -> JSONValue {
        var octets = value?.string.flatMap { Hex.decode($0.utf8) } ?? []
        octets[place] ^= 1 << UInt8(place % 8)
        return .string(Hex.encode(octets))
    }

    @Test func attestation_everySample_verifies() throws {
        let lines = try Samples.attestations()
        #expect(lines.count == 18)
        for line in lines {
            let answer = Samples.answer(line)
            #expect(
                answer["valid"] == .bool(true),
                "\(line["id"]?.string ?? ""): \(answer["error"]?.string ?? "")")
            #expect(answer["key_id"] == line["key_id"])
        }
    }

    /// Most apps attest SHA-256 of the challenge; Apple's own sample attests the challenge.
    @Test func attestation_challengeAsIssued_verifies() throws {
        var count = 0
        for (line, sample) in zip(
            try Samples.attestations(), try Samples.file()["attestations"]?.array ?? [])
        {
            guard let challenge = sample.object?["challenge"]?.object,
                let value = challenge["value"]?.string
            else { continue }
            count += 1
            var line = line
            let octets: [UInt8]? =
                switch challenge["encoding"] {
                case "base64": DeviceOctets.base64(value)
                case "uuid": Hex.decode(value.utf8.filter { $0 != UInt8(ascii: "-") })
                default: Array(value.utf8)
                }
            line["client_data"] = .string(Hex.encode(octets ?? []))
            let answer = Samples.answer(line)
            #expect(
                answer["valid"] == .bool(true),
                "\(line["id"]?.string ?? ""): \(answer["error"]?.string ?? "")")
        }
        #expect(count == 17)
    }

    @Test func attestation_inBase64_isRead() throws {
        let samples = try #require(try Samples.file()["attestations"]?.array)
        let lines = try Samples.attestations()
        #expect(lines.count == samples.count && !lines.isEmpty)
        for (line, sample) in zip(lines, samples) {
            var line = line
            line["key_id"] = sample.object?["keyIdBase64"]
            line["attestation"] = sample.object?["attestationObjectBase64"]
            #expect(Samples.answer(line)["valid"] == .bool(true))
        }
    }

    @Test func attestation_oneFieldWrong_isRefused() throws {
        let lines = try Samples.attestations()
        for line in lines {
            let name = line["id"]?.string ?? ""
            func broken(_ member: String, _ value: JSONValue, _ check: String) {
                var other = line
                other[member] = value
                refused(other, check, "\(name), \(member)")
            }
            let now = line["now"]?.number?.integer ?? 0
            broken("client_data", flipped(line["client_data"], at: 3), "nonce")
            broken("key_id", flipped(line["key_id"], at: 7), "key-id")
            broken("app_id", .string("X" + (line["app_id"]?.string ?? "")), "app-id")
            broken(
                "environment", line["environment"] == "production" ? "development" : "production",
                "environment")
            broken("now", .integer(now - 86_400 * 30), "certificate")
            broken("now", .integer(now + 86_400 * 400), "certificate")
            broken("roots", .array([]), "certificate")
            broken("roots", .array([.string("00")]), "request")
            let parts = line["app_id"]?.string?.split(separator: ".", maxSplits: 1) ?? []
            broken("app_id", .string(String(parts.last ?? "")), "app-id")
            for (change, altered) in try self.altered(line) {
                var other = line
                other["attestation"] = .string(Hex.encode(altered))
                #expect(Samples.answer(other)["valid"] == .bool(false), "\(name), \(change)")
            }
        }
    }

    /// The attestation with a part of it missing or moved.
    private func altered(_ line: JSONObject) throws -> [(String, [UInt8])] {
        let octets = try #require(line["attestation"]?.string.flatMap { Hex.decode($0.utf8) })
        /// Replaces the first occurrence.
        func replacing(_ text: [UInt8], by other: [UInt8]) throws -> [UInt8] {
            let start = try #require(octets.indices.first { octets[$0...].starts(with: text) })
            return Array(octets[..<start]) + other + Array(octets[(start + text.count)...])
        }
        // x5c, an array of two byte strings with lengths of two octets.
        let name = Array("x5c".utf8) + [0x82]
        let start =
            try #require(octets.indices.first { octets[$0...].starts(with: name) }) + name.count
        func end(_ start: Int) -> Int {
            start + 3 + (Int(octets[start + 1]) << 8) + Int(octets[start + 2])
        }
        let (middle, behind) = (end(start), end(end(start)))
        let (leaf, issuer, rest) = (
            Array(octets[start..<middle]), Array(octets[middle..<behind]), Array(octets[behind...])
        )
        let head = Array(octets[..<(start - 1)])
        return [
            ("the issuer alone", head + [0x81] + issuer + rest),
            ("the leaf alone", head + [0x81] + leaf + rest),
            ("reversed", head + [0x82] + issuer + leaf + rest),
            (
                "packed",
                try replacing(
                    [0x6F] + Array("apple-appattest".utf8), by: [0x66] + Array("packed".utf8))
            ),
            (
                "apple",
                try replacing(
                    [0x6F] + Array("apple-appattest".utf8), by: [0x65] + Array("apple".utf8))
            ),
            (
                "another name for the receipt",
                try replacing(Array("receipt".utf8), by: Array("receips".utf8))
            ),
            ("octets behind", octets + [0]), ("cut", octets.dropLast()),
        ]
    }

    @Test func attestation_anyOctetChanged_isRefused() throws {
        let line = try #require(try Samples.attestations().first)
        let count = (line["attestation"]?.string?.utf8.count ?? 0) / 2
        let receipt = try #require(self.receipt(line))
        for place in 0..<count where !receipt.contains(place) {
            var other = line
            other["attestation"] = flipped(line["attestation"], at: place)
            #expect(Samples.answer(other)["valid"] == .bool(false), "octet \(place)")
        }
    }

    /// The octets of the receipt, which the steps do not read; its length counts.
    private func receipt(_ line: JSONObject) -> Range<Int>? {
        let octets = line["attestation"]?.string.flatMap { Hex.decode($0.utf8) } ?? []
        let name = Array("receipt".utf8)
        guard let start = octets.indices.first(where: { octets[$0...].starts(with: name) }),
            octets[start + 7] == 0x59
        else {
            return nil
        }
        let first = start + 10
        return first..<(first + (Int(octets[start + 8]) << 8) + Int(octets[start + 9]))
    }

    @Test func assertion_everySample_verifies() throws {
        let lines = try Samples.assertions()
        #expect(lines.count == 7)
        for line in lines {
            let answer = Samples.answer(line)
            #expect(
                answer["valid"] == .bool(true),
                "\(line["id"]?.string ?? ""): \(answer["error"]?.string ?? "")")
        }
    }

    @Test func assertion_oneFieldWrong_isRefused() throws {
        let lines = try Samples.assertions()
        for line in lines {
            let name = line["id"]?.string ?? ""
            func broken(_ member: String, _ value: JSONValue?, _ check: String) {
                var other = line
                other[member] = value
                refused(other, check, "\(name), \(member)")
            }
            broken("client_data", flipped(line["client_data"], at: 0), "signature")
            broken("app_id", .string("X" + (line["app_id"]?.string ?? "")), "app-id")
            broken("public_key", flipped(line["public_key"], at: 40), "public-key")
            broken("counter", .integer(3), "counter")
            broken("counter", .integer(4_294_967_295), "counter")
            broken("counter", .integer(4_294_967_296), "request")
            for other in lines where other["public_key"] != line["public_key"] {
                broken("public_key", other["public_key"], "signature")
            }
            let count = (line["assertion"]?.string?.utf8.count ?? 0) / 2
            for place in 0..<count {
                var altered = line
                altered["assertion"] = flipped(line["assertion"], at: place)
                #expect(Samples.answer(altered)["valid"] == .bool(false), "\(name): octet \(place)")
            }
        }
    }

    @Test(arguments: [
        "", "[]", "{", #"{"app_id":1}"#, #"{"id":5,"app_id":"a"}"#,
        #"{"app_id":"a","client_data":"0"}"#,
    ])
    func line_notARequest_isRefused(line: String) {
        let answer = AttestationLine.answer(Array(line.utf8), now: 0) { _ in nil }
        #expect(answer["valid"] == .bool(false))
        #expect(answer["error"]?.string?.hasPrefix("request: ") == true)
    }
}
