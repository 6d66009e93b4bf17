// The key file as text: one key a line, `purpose id state secret`. The server reads and
// writes the file itself.

import MailCrypto
import Support

/// The reason why a key file cannot be used. Never repeats a secret.
package struct KeyFileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The line, from 1; 0 for the whole file.
    package let line: Int
    package let message: String
    package var description: String { line > 0 ? "line \(line): \(message)" : message }
}

extension KeyRing {
    /// The header of every key file.
    private static let fileHeader = """
        # Keys of this Postern installation. Anyone who has this file and the database can read every inbox address;
        # without it none of them can be read. Keep it out of the database's backups, with mode 0600.
        #
        # One key a line:  PURPOSE  ID  STATE  SECRET
        #   PURPOSE  seal   AES-256-GCM: inbox addresses and names in the database
        #            index  HMAC-SHA-256: finds an inbox without storing it
        #            token  HMAC-SHA-256: reverse addresses and return paths
        #            mark   HMAC-SHA-256: hashes of what is not kept; the index key where there is no such line
        #   ID       one character of a-z 2-7, unique within the purpose; stored with everything that the key made
        #   STATE    next (read, not used yet), active (makes new values; one for each purpose) or old (still read)
        #   SECRET   32 random octets, 64 hexadecimal digits
        # postern keys file rotate replaces keys. Removing an old one by hand retires it: what it made cannot be read any more.

        """

    /// The text of a key file with these keys.
    package var fileText: String {
        var text = Self.fileHeader
        for purpose in KeyPurpose.allCases {
            guard let set = self[purpose] else { continue }
            for version in set.versions {
                text +=
                    "\(purpose.rawValue) \(version.idText) \(set.state(of: version).rawValue) \(Hex.encode(version.secret))\n"
            }
        }
        return text
    }

    /// Reads a key file. Throws `KeyFileError` for an unknown purpose or state, a malformed key, a
    /// duplicate id, or a purpose without exactly one active key.
    package init(fileText: String) throws {
        var versions: [KeyPurpose: [KeyVersion]] = [:]
        var active: [KeyPurpose: KeyVersion] = [:]
        var next: [KeyPurpose: KeyVersion] = [:]
        for (offset, line) in fileText.split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline
        ).enumerated() {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard let first = words.first, !first.hasPrefix("#") else { continue }
            let number = offset + 1
            guard words.count == 4 else {
                throw KeyFileError(
                    line: number, message: "a key must be four words: purpose, id, state, secret")
            }
            guard let purpose = KeyPurpose(rawValue: String(words[0])) else {
                throw KeyFileError(
                    line: number, message: "unknown purpose (known: seal, index, token, mark)")
            }
            guard words[1].utf8.count == 1, let id = words[1].utf8.first, Base32.isCharacter(id)
            else {
                throw KeyFileError(line: number, message: "the id must be one character of a-z 2-7")
            }
            guard let state = KeyState(rawValue: String(words[2])) else {
                throw KeyFileError(line: number, message: "the state must be next, active or old")
            }
            guard let secret = Hex.decode(words[3].utf8), secret.count == KeyRing.keyLength else {
                throw KeyFileError(
                    line: number, message: "the secret must be 64 hexadecimal digits")
            }
            guard versions[purpose, default: []].allSatisfy({ $0.id != id }) else {
                throw KeyFileError(
                    line: number, message: "a second \(purpose.rawValue) key with this id")
            }
            let version = KeyVersion(id: id, secret: secret)
            versions[purpose, default: []].append(version)
            switch state {
            case .old: break
            case .active:
                guard active[purpose] == nil else {
                    throw KeyFileError(
                        line: number, message: "a second active \(purpose.rawValue) key")
                }
                active[purpose] = version
            case .next:
                guard next[purpose] == nil else {
                    throw KeyFileError(
                        line: number, message: "a second next \(purpose.rawValue) key")
                }
                next[purpose] = version
            }
        }
        func set(_ purpose: KeyPurpose) throws -> KeySet {
            guard let active = active[purpose], let all = versions[purpose] else {
                throw KeyFileError(line: 0, message: "no active \(purpose.rawValue) key")
            }
            return KeySet(active: active, versions: all, next: next[purpose])
        }
        let mark = versions[.mark] == nil ? nil : try set(.mark)
        self.init(seal: try set(.seal), index: try set(.index), token: try set(.token), mark: mark)
        guard index.versions.count <= 2 else {
            throw KeyFileError(
                line: 0,
                message: "at most two index keys are allowed: an inbox is searched with both")
        }
        guard mark?.versions.count ?? 1 == 1 else {
            throw KeyFileError(
                line: 0,
                message:
                    "at most one mark key is allowed: the values of its hashes are not stored, so they cannot be hashed again"
            )
        }
        guard index.versions.count == 1 || mark != nil else {
            throw KeyFileError(
                line: 0, message: "two index keys need a mark key: postern keys file rotate adds it"
            )
        }
    }
}
