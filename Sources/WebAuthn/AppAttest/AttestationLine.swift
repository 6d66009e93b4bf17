// A line of `postern verify attestation --batch`, and its answer.

import MailCrypto
import Support

/// A request: `{id, app_id, environment, key_id, client_data, attestation | assertion, public_key,
/// counter, now, roots}`. Octets are hexadecimal, or base64 as Apple's interfaces return them.
package struct AttestationLine {
    /// Longest line read, in octets.
    package static let maximumLength = 1_048_576

    private let members: JSONObject

    /// Returns `{id, valid, error?, key_id?, public_key?, counter?}` for any line.
    /// - Parameters:
    ///   - now: the time for certificates if the line has none, in seconds since 1970.
    ///   - time: parses a time given as text to seconds since 1970; nil if it is not a valid time.
    package static func answer(_ line: [UInt8], now: Int64, time: (String) -> Int64?) -> JSONObject
    {
        var id = JSONValue.null
        do throws(AppAttestError) {
            let members: JSONObject
            do throws(JSONError) {
                members = try StrictJSON.parseObject(line, limit: maximumLength)
            } catch {
                throw AppAttestError(.request, "\(error)")
            }
            id = members["id"] ?? .null
            var answer = try AttestationLine(members: members).answer(now: now, time: time)
            answer["id"] = id
            answer["valid"] = .bool(true)
            return answer
        } catch {
            return ["id": id, "valid": .bool(false), "error": .string(error.description)]
        }
    }

    private func answer(now: Int64, time: (String) -> Int64?) throws(AppAttestError) -> JSONObject {
        var environment = AppAttestExpectation.Environment.production
        if self["environment"] != nil {
            guard let known = AppAttestExpectation.Environment(rawValue: try text("environment"))
            else {
                throw AppAttestError(.request, "environment is neither production nor development")
            }
            environment = known
        }
        let expectation = AppAttestExpectation(
            appID: try text("app_id"), environment: environment,
            clientData: try octets("client_data"))
        switch (self["attestation"] != nil, self["assertion"] != nil) {
        case (true, false):
            let key = try AppAttestation.verify(
                octets("attestation"), expectation, keyID: octets("key_id"), roots: roots(),
                now: self.time(time) ?? now)
            return [
                "key_id": .string(Hex.encode(key.id)), "public_key": .string(Hex.encode(key.point)),
                "counter": .integer(0),
            ]
        case (false, true):
            let point = try octets("public_key")
            if self["key_id"] != nil, try octets("key_id") != SHA256.hash(point) {
                throw AppAttestError(.keyID, "it is not that of public_key")
            }
            let counter = try AppAssertion.verify(
                octets("assertion"), expectation, point: point, counter: counter())
            return [
                "key_id": .string(Hex.encode(SHA256.hash(point))),
                "counter": .integer(Int64(counter)),
            ]
        default: throw AppAttestError(.request, "give either attestation or assertion")
        }
    }

    // MARK: Members

    /// Also nil if it is null.
    private subscript(name: String) -> JSONValue? { members[name] == .null ? nil : members[name] }

    private func text(_ name: String) throws(AppAttestError) -> String {
        guard let text = self[name]?.string else {
            throw AppAttestError(.request, "\(name) is not a string")
        }
        return text
    }

    private func octets(_ name: String) throws(AppAttestError) -> [UInt8] {
        guard let octets = Self.octets(try text(name)) else {
            throw AppAttestError(.request, "\(name) is neither hexadecimal nor base64")
        }
        return octets
    }

    private static func octets(_ text: String) -> [UInt8]? {
        Hex.decode(text.utf8) ?? DeviceOctets.base64(text)
    }

    private func roots() throws(AppAttestError) -> [Certificate] {
        guard let value = self["roots"] else { return [] }
        guard let items = value.array else {
            throw AppAttestError(.request, "roots is not an array")
        }
        var roots = [Certificate]()
        for item in items {
            guard let der = item.string.flatMap(Self.octets), let root = try? Certificate(der: der)
            else {
                throw AppAttestError(.request, "roots has an item that is not a DER certificate")
            }
            roots.append(root)
        }
        return roots
    }

    private func counter() throws(AppAttestError) -> UInt32 {
        guard let value = self["counter"] else { return 0 }
        guard let counter = value.number?.integer.flatMap(UInt32.init(exactly:)) else {
            throw AppAttestError(.request, "counter is not a whole number of 32 bits")
        }
        return counter
    }

    private func time(_ reading: (String) -> Int64?) throws(AppAttestError) -> Int64? {
        guard let value = self["now"] else { return nil }
        guard let seconds = value.number?.floor ?? value.string.flatMap(reading) else {
            throw AppAttestError(.request, "now is not a valid time")
        }
        return seconds
    }
}
