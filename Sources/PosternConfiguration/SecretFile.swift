// A secret in a separate file, so that neither the configuration nor the process list shows it.

import Foundation

package enum SecretFile {
    /// The first line. Throws `ConfigurationError` for a file that cannot be read, that others can read, or that is empty.
    /// - Parameters:
    ///   - key: the setting with the file's name.
    ///   - place: the configuration that has it.
    package static func text(_ path: String, for key: String, at place: String) throws(ConfigurationError) -> String {
        func refusal(_ what: String) -> ConfigurationError {
            ConfigurationError(.invalidValue, at: place, "\(key): \(path): \(what)")
        }
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),
            let text = try? String(contentsOfFile: path, encoding: .utf8)
        else { throw refusal("it cannot be read") }
        guard ((attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0o777) & 0o077 == 0 else {
            throw refusal("others can read it: run chmod 600 \(path)")
        }
        guard let line = text.split(whereSeparator: \.isNewline).first.map(String.init), !line.isEmpty else {
            throw refusal("it is empty: the secret belongs on its first line")
        }
        return line
    }
}
