// X.509 certificates (RFC 5280), parsed and verified up to a root by libcrypto.

import COpenSSL

/// A certificate. May be shared between threads.
package final class Certificate: @unchecked Sendable {
    /// The time at which a certificate must be valid, if it is checked at all.
    package enum Validity: Sendable, Hashable {
        /// Seconds since 1970.
        case at(Int64)
        /// For old signatures, such as an attestation whose certificate was valid for three days.
        case anyTime
    }

    private let pointer: OpaquePointer
    package let publicKey: AnyPublicKey

    /// Longest certificate, in octets. Those of attestations have about a thousand.
    private static let longest = 16_384

    /// Takes one certificate, DER; `invalidKey` if it is malformed, octets follow, or its key
    /// is of a kind not used here.
    package init(der: [UInt8]) throws(CryptoError) {
        guard der.count <= Self.longest else {
            throw CryptoError(.invalidKey, "a certificate of over \(Self.longest) octets")
        }
        let (pointer, isWhole) = der.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            let pointer = d2i_X509(nil, &start, buffer.count)
            return (pointer, start == buffer.baseAddress.map { $0 + buffer.count })
        }
        guard let pointer else { throw CryptoError.fromLibrary(.invalidKey, "not a certificate") }
        do throws(CryptoError) {
            guard isWhole else { throw CryptoError(.invalidKey, "octets follow the certificate") }
            guard let key = X509_get_pubkey(pointer) else {
                throw CryptoError.fromLibrary(
                    .invalidKey, "a certificate without a public key that can be read")
            }
            publicKey = try AnyPublicKey(KeyHandle(key))
        } catch {
            X509_free(pointer)
            throw error
        }
        self.pointer = pointer
    }

    deinit { X509_free(pointer) }

    /// 1, 2 or 3.
    package var version: Int { X509_get_version(pointer) + 1 }

    /// Whether it may issue others: basic constraints (RFC 5280 section 4.2.1.9); nil if
    /// the extension is absent.
    package var isAuthority: Bool? {
        var isCritical: Int32 = 0
        guard
            let extensionValue = X509_get_ext_d2i(pointer, NID_basic_constraints, &isCritical, nil)
        else {
            drainLibraryErrors()
            return nil
        }
        let constraints = extensionValue.assumingMemoryBound(to: BASIC_CONSTRAINTS.self)
        defer { BASIC_CONSTRAINTS_free(constraints) }
        return constraints.pointee.ca != 0
    }

    /// A part of the subject's name.
    package enum SubjectPart: Sendable {
        case country, organization, organizationalUnit, commonName

        fileprivate var identifier: Int32 {
            switch self {
            case .country: NID_countryName
            case .organization: NID_organizationName
            case .organizationalUnit: NID_organizationalUnitName
            case .commonName: NID_commonName
            }
        }
    }

    /// The values of a part of the subject's name, in order.
    package func subject(_ part: SubjectPart) -> [String] {
        guard let name = X509_get_subject_name(pointer) else { return [] }
        var values: [String] = []
        var index: Int32 = -1
        while true {
            index = X509_NAME_get_index_by_NID(name, part.identifier, index)
            guard index >= 0 else { return values }
            guard let entry = X509_NAME_get_entry(name, index),
                let data = X509_NAME_ENTRY_get_data(entry)
            else { continue }
            var text: UnsafeMutablePointer<UInt8>?
            let length = ASN1_STRING_to_UTF8(&text, data)
            guard length >= 0, let text else { continue }
            values.append(
                String(
                    decoding: UnsafeBufferPointer(start: text, count: Int(length)), as: UTF8.self))
            CRYPTO_free(text, #fileID, #line)
        }
    }

    /// An extension: the content of its OCTET STRING, and whether it is critical. Nil if it
    /// is absent or occurs twice.
    /// - Parameter identifier: in dotted form, as in `1.3.6.1.4.1.45724.1.1.4`.
    package func extensionValue(_ identifier: String) -> (octets: [UInt8], isCritical: Bool)? {
        guard let object = OBJ_txt2obj(identifier, 1) else {
            drainLibraryErrors()
            return nil
        }
        defer { ASN1_OBJECT_free(object) }
        let index = X509_get_ext_by_OBJ(pointer, object, -1)
        guard index >= 0, X509_get_ext_by_OBJ(pointer, object, index) < 0,
            let found = X509_get_ext(pointer, index),
            let data = X509_EXTENSION_get_data(found), let start = ASN1_STRING_get0_data(data)
        else { return nil }
        let octets = Array(UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(data))))
        return (octets, X509_EXTENSION_get_critical(found) == 1)
    }

    /// Whether this certificate leads to one of the roots through the others (RFC 5280 section 6).
    /// A root may be any certificate of the chain, including this one.
    package func leads(
        to roots: [Certificate], by others: [Certificate], _ validity: Validity
    ) -> Bool {
        defer { drainLibraryErrors() }
        guard let store = X509_STORE_new() else { return false }
        defer { X509_STORE_free(store) }
        for root in roots where X509_STORE_add_cert(store, root.pointer) != 1 { return false }
        guard let between = COPENSSL_certificates_new() else { return false }
        defer { COPENSSL_certificates_free(between) }
        for other in others where COPENSSL_certificates_push(between, other.pointer) == 0 {
            return false
        }
        guard let context = X509_STORE_CTX_new() else { return false }
        defer { X509_STORE_CTX_free(context) }
        guard X509_STORE_CTX_init(context, store, pointer, between) == 1,
            let parameters = X509_STORE_CTX_get0_param(context)
        else {
            return false
        }
        var flags = UInt(X509_V_FLAG_PARTIAL_CHAIN)
        switch validity {
        case .at(let time): X509_VERIFY_PARAM_set_time(parameters, Int(time))
        case .anyTime: flags |= UInt(X509_V_FLAG_NO_CHECK_TIME)
        }
        guard X509_VERIFY_PARAM_set_flags(parameters, flags) == 1 else { return false }
        return X509_verify_cert(context) == 1
    }
}
