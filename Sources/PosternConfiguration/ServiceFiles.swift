// Files that a service reads once, at its start. `postern config check` reads them too.

import Accounts
import Foundation
import MailCrypto
import WebAuthn

package enum ServiceFiles {
    /// The operator's logo on pages; nil if there is none. Throws `ConfigurationError` if it cannot
    /// be used.
    package static func logo(
        _ configuration: Configuration, at place: String
    ) throws(ConfigurationError) -> AppIcon? {
        func refuse(_ detail: String) -> ConfigurationError {
            ConfigurationError(.invalidValue, at: place, "page.logo: \(detail)")
        }
        guard let logo = configuration.pageLogoPath else { return nil }
        guard let file = FileHandle(forReadingAtPath: logo),
            let octets = try? file.read(upToCount: AppIcon.maximumSize + 1)
        else { throw refuse("\(logo) cannot be read") }
        do { return try AppIcon(png: Array(octets)) } catch {
            throw refuse(error.publicMessage.replacing("the icon", with: "it"))
        }
    }

    /// Certificates of device manufacturers, for new passkeys.
    package static func passkeyRoots(
        _ configuration: Configuration, at place: String
    ) throws(ConfigurationError) -> [Certificate] {
        guard let path = configuration.provider.passkeyRootsPath else { return [] }
        guard let octets = FileManager.default.contents(atPath: path),
            let found = CertificateFile.read(Array(octets))
        else {
            throw ConfigurationError(
                .invalidValue, at: place,
                "sign_in.passkey_roots: \(path) contains no certificates in PEM")
        }
        do throws(CryptoError) {
            var roots: [Certificate] = []
            for der in found { roots.append(try Certificate(der: der)) }
            return roots
        } catch {
            throw ConfigurationError(
                .invalidValue, at: place, "sign_in.passkey_roots: \(path): \(error.message)")
        }
    }
}
