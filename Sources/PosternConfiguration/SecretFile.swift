// A secret in a separate file, so that neither the configuration nor the process list shows it.

import Foundation

package enum SecretFile {
    /// The first line. Throws `ConfigurationError` if the file cannot be read, is empty, or is
    /// readable by other users.
    /// - Parameters:
    ///   - key: the setting that names the file.
    ///   - place: the place of the configuration, for errors.
    package static func text(
        _ path: String, for key: String, at place: String
    ) throws(ConfigurationError) -> String {
        func refusal(_ what: String) -> ConfigurationError {
            ConfigurationError(.invalidValue, at: place, "\(key): \(path): \(what)")
        }
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),
            let text = try? String(contentsOfFile: path, encoding: .utf8)
        else { throw refusal("it cannot be read") }
        guard ((attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0o777) & 0o077 == 0 else {
            throw refusal("other users can read it: run chmod 600 \(path)")
        }
        guard let line = text.split(whereSeparator: \.isNewline).first.map(String.init),
            !line.isEmpty
        else {
            throw refusal("it is empty: the secret belongs on its first line")
        }
        return line
    }
}
