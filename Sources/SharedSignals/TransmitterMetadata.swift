// The metadata of a transmitter (SSF 1.0 section 7).

import Support

/// The document at `/.well-known/ssf-configuration`.
package enum TransmitterMetadata {
    /// Its path below the root of the server (section 7.2.1).
    package static let path = "/.well-known/ssf-configuration"

    /// Paths of the endpoints, below the issuer.
    package static let (configuration, status) = ("/ssf/stream", "/ssf/status")
    package static let (addSubject, removeSubject) = ("/ssf/subjects/add", "/ssf/subjects/remove")
    package static let (verification, poll) = ("/ssf/verification", "/ssf/poll")

    /// The scopes of access tokens (CAEP Interoperability Profile 1.0 section 2.7.3).
    package static let (readScope, manageScope) = ("ssf.read", "ssf.manage")

    /// The URL from which a stream is polled.
    package static func pollURL(issuer: String, stream: String) -> String {
        "\(issuer)\(poll)/\(stream)"
    }

    /// The document of an issuer.
    package static func document(issuer: String) -> JSONObject {
        func endpoint(_ path: String) -> JSONValue { .string(issuer + path) }
        return [
            "spec_version": "1_0", "issuer": .string(issuer), "jwks_uri": endpoint("/auth/keys"),
            "delivery_methods_supported": .array([
                .string(StreamDelivery.pushMethod), .string(StreamDelivery.pollMethod),
            ]),
            "configuration_endpoint": endpoint(configuration), "status_endpoint": endpoint(status),
            "add_subject_endpoint": endpoint(addSubject),
            "remove_subject_endpoint": endpoint(removeSubject),
            "verification_endpoint": endpoint(verification),
            "authorization_schemes": .array([.object(["spec_urn": "urn:ietf:rfc:6749"])]),
            "default_subjects": "ALL",
        ]
    }
}
