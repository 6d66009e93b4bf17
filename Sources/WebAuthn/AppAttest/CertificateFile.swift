// Certificate files: DER, or PEM (RFC 7468).

/// Reads files of certificates.
package enum CertificateFile {
    /// DER of each certificate, in the order of the file; nil if one cannot be read, or there is
    /// none. Text between them is skipped.
    package static func read(_ octets: [UInt8]) -> [[UInt8]]? {
        guard octets.first != 0x30 else { return [octets] }
        var found: [[UInt8]] = []
        var lines = String(decoding: octets, as: UTF8.self).split(whereSeparator: \.isNewline)[...]
        while let start = lines.firstIndex(of: "-----BEGIN CERTIFICATE-----") {
            guard let end = lines[start...].firstIndex(of: "-----END CERTIFICATE-----"),
                let der = DeviceOctets.base64(lines[(start + 1)..<end].joined())
            else { return nil }
            found.append(der)
            lines = lines[(end + 1)...]
        }
        return found.isEmpty ? nil : found
    }
}
