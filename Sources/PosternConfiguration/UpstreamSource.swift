// `sign_in.upstream`: the operator's existing OpenID provider.

import Foundation
import SignIn

/// The configured provider; its secret is read when it is used.
package struct UpstreamSource: Sendable {
    package let issuer: String
    private let clientID: String
    private let secretPath: String?
    private let name: String
    private let scopes: [String]
    private let links: UpstreamSettings.Links
    private let addresses: UpstreamSettings.Addresses
    private let isOnly: Bool

    /// Nil if no provider is configured. Throws if it is only partly configured.
    /// - Parameters:
    ///   - text: the value of a key; empty if it is absent.
    ///   - place: the place of the configuration, for errors.
    init?(
        _ text: (ConfigurationKey) -> String, scopes: [String], secretPath: String, hasPage: Bool,
        at place: String
    ) throws(ConfigurationError) {
        func refuse(_ what: String) -> ConfigurationError {
            ConfigurationError(.invalidValue, at: place, "sign_in.upstream.\(what)")
        }
        issuer = text(.signInUpstreamIssuer)
        clientID = text(.signInUpstreamClientID)
        guard !issuer.isEmpty else {
            guard clientID.isEmpty else {
                throw refuse("issuer: must be set with sign_in.upstream.client_id")
            }
            return nil
        }
        guard !issuer.contains("?"), KeySetAddress.objection(issuer) == nil else {
            throw refuse(
                "issuer: must be an https: URL without query, as in https://id.example/realms/main")
        }
        guard !clientID.isEmpty else {
            throw refuse("client_id: must be set with sign_in.upstream.issuer")
        }
        guard hasPage else {
            throw refuse("issuer: needs http.public_url, to which the provider sends users back")
        }
        self.secretPath = text(.signInUpstreamSecretFile).isEmpty ? nil : secretPath
        name =
            text(.signInUpstreamName).isEmpty
            ? URLComponents(string: issuer)?.host ?? issuer : text(.signInUpstreamName)
        self.scopes = scopes
        links = UpstreamSettings.Links(rawValue: text(.signInUpstreamLinks)) ?? .never
        addresses =
            UpstreamSettings.Addresses(rawValue: text(.signInUpstreamAddresses)) ?? .verified
        isOnly = text(.signInUpstreamOnly) == "yes"
    }

    /// The settings with the secret. Throws if the secret cannot be read.
    /// - Parameter place: the place of the configuration, for errors.
    package func settings(at place: String) throws(ConfigurationError) -> UpstreamSettings {
        var secret: ClientSecretText?
        if let secretPath {
            secret = ClientSecretText(
                try SecretFile.text(secretPath, for: "sign_in.upstream.secret_file", at: place))
        }
        return UpstreamSettings(
            issuer: issuer, clientID: clientID, secret: secret, name: name, scopes: scopes,
            links: links, addresses: addresses,
            isOnly: isOnly)
    }
}
