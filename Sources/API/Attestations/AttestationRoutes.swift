// /v1/attestations: devices' attestations and assertions of an app, verified for its team's
// backend.

import Decisions
import HTTP
import Hummingbird
import Support
import WebAuthn

package struct AttestationRoutes: RouteModule {
    private let parts: RouteParts

    package init(_ parts: RouteParts) { self.parts = parts }

    /// The most octets of an attestation or of client data, in base64.
    private static let longest = 32_768

    package func addRoutes(to routes: Routes) {
        routes.team(.decisionsWrite).post("/v1/attestations/challenge", use: challenge).post(
            "/v1/attestations", use: verify)
    }

    private struct Challenge: Encodable {
        let challenge: String
        let expiresAt: Timestamp
    }

    private struct Device: Encodable {
        let device: String
        let appId: String
        let environment: String
        let assertions: Int64
        let attestedAt: Timestamp

        init(_ device: AttestedDevice) {
            self.device = device.id
            appId = device.appID
            environment = device.environment.rawValue
            assertions = device.assertions
            attestedAt = Timestamp(device.attestedAt)
        }
    }

    private func body(
        _ request: Request, _ context: TeamContext, names: Set<String>
    ) async throws -> Members {
        let octets = Array(
            try await request.collect(context, type: "application/json").readableBytesView)
        return try Members(try JSONBody.parse(octets), names: names)
    }

    private func challenge(_ request: Request, _ context: TeamContext) async throws -> Response {
        let clientID = try await body(request, context, names: ["client_id"]).needed(
            "client_id", limit: 255)
        let (team, now) = (context.caller.number, parts.now())
        let made = try await parts.run {
            try $0.devices.challenge(team: team, clientID: clientID, now: now)
        }
        return try .json(Challenge(challenge: made.text, expiresAt: Timestamp(made.expiresAt)))
    }

    private func verify(_ request: Request, _ context: TeamContext) async throws -> Response {
        let members = try await body(
            request, context,
            names: ["client_id", "challenge", "key_id", "attestation", "assertion", "client_data"])
        let (team, now) = (context.caller.number, parts.now())
        let clientID = try members.needed("client_id", limit: 255)
        let keyID = try members.octets("key_id", limit: 64)
        guard keyID.count == 32 else { throw Problem.invalid("must have 32 octets", at: "/key_id") }
        let isAttestation = members["attestation"] != nil
        guard isAttestation != (members["assertion"] != nil) else {
            throw Problem.invalid("send either attestation or assertion", at: "/attestation")
        }
        guard (members["challenge"] != nil) == isAttestation,
            (members["client_data"] != nil) != isAttestation
        else {
            throw Problem.invalid(
                "an attestation has a challenge, an assertion has client_data", at: "/challenge")
        }
        let device: AttestedDevice
        if isAttestation {
            let challenge = try members.needed("challenge", limit: 255)
            let attestation = try members.octets("attestation", limit: Self.longest)
            device = try await parts.run {
                try $0.devices.attest(
                    team: team, clientID: clientID, challenge: challenge, keyID: keyID,
                    attestation: attestation, now: now)
            }
        } else {
            let assertion = try members.octets("assertion", limit: Self.longest)
            let clientData = try members.octets("client_data", limit: Self.longest)
            device = try await parts.run {
                try $0.devices.assert(
                    team: team, clientID: clientID, keyID: keyID, assertion: assertion,
                    clientData: clientData, now: now)
            }
        }
        return try .json(Device(device))
    }
}

extension Members {
    /// A required text.
    fileprivate func needed(_ name: String, limit: Int) throws -> String {
        guard let text = try text(name, limit: limit) else {
            throw Problem.invalid("is missing", at: "/\(name)")
        }
        return text
    }

    /// Required octets, in base64.
    fileprivate func octets(_ name: String, limit: Int) throws -> [UInt8] {
        guard let octets = DeviceOctets.base64(try needed(name, limit: limit)) else {
            throw Problem.invalid("must be base64", at: "/\(name)")
        }
        return octets
    }
}
