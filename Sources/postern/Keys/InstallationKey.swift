// A key of the installation, of any kind, and its next step.

import Accounts
import MailAuth
import SignIn
import Support

/// A key that is not retired.
struct InstallationKey {
    /// The names of the subcommands of `postern keys`.
    enum Kind: String, CaseIterable { case file, dkim, signing }

    let kind: Kind
    /// The key's id in the key file, its selector, or its `kid`.
    let id: String
    /// Its use within its kind: the purpose, the relay domain, or the algorithm.
    let use: String
    let state: String
    /// The time at which its present state began, in seconds since 1970; nil if that is not
    /// recorded.
    let since: Int64?
    /// The next step, and the command for it.
    let next: String
    /// When the next step is due, in seconds since 1970; nil if it does not depend on time.
    let nextAt: Int64?

    /// The key's name for commands; it is unique.
    var words: String {
        switch kind {
        case .file: "\(use) \(id)"
        case .dkim: "\(id) \(use)"
        case .signing: id
        }
    }

    var members: Members {
        let name =
            switch kind {
            case .file: "purpose"
            case .dkim: "domain"
            case .signing: "algorithm"
            }
        return [
            "kind": kind.rawValue, "id": id, name: use, "state": state,
            "since": since.map(timestamp), "next": next,
            "next_at": nextAt.map(timestamp),
        ]
    }
}

extension InstallationKey {
    /// The keys of a key file, by purpose.
    static func all(_ ring: KeyRing) -> [InstallationKey] {
        KeyPurpose.allCases.flatMap { purpose -> [InstallationKey] in
            guard let set = ring[purpose] else { return [] }
            return set.versions.map { version in
                let state = set.state(of: version)
                return InstallationKey(
                    kind: .file, id: version.idText, use: purpose.rawValue, state: state.rawValue,
                    since: nil,
                    next: next(purpose, version, state), nextAt: nil)
            }
        }
    }

    private static func next(
        _ purpose: KeyPurpose, _ version: KeyVersion, _ state: KeyState
    ) -> String {
        let rotate = "postern keys file rotate" + (purpose == .token ? " token" : "")
        return switch (purpose, state) {
        case (.mark, _): "it stays: its values cannot be hashed again"
        case (_, .next): "a rotation has begun: \(rotate) continues it"
        case (_, .active): "\(rotate) replaces it"
        case (.seal, .old), (.index, .old): "\(rotate) removes it when nothing uses it"
        case (.token, .old): "it verifies until postern keys file retire token \(version.idText)"
        }
    }

    /// Nil for a retired key.
    init?(_ key: DKIMKey, now: Int64) {
        let retire = RemedyCommand(.retireKey, [key.selector, key.domain]).text
        let (since, next, end): (Int64?, String, Int64?)
        switch key.state {
        case .retired: return nil
        case .pending:
            let activate = RemedyCommand(.activateKey, [key.selector, key.domain]).text
            (since, next, end) = (key.createdAt, "publish its record, then \(activate)", nil)
        case .active:
            (since, next, end) = (
                key.activatedAt, "\(RemedyCommand(.generateKey, [key.domain]).text) makes the next",
                nil
            )
        case .retiring:
            let last = (key.deactivatedAt ?? now) + DKIMKeyRepository.publicationAfterUse
            let text =
                last > now
                ? "keep its record until \(timestamp(last)), then \(retire)"
                : "\(retire), then remove its record"
            (since, next, end) = (key.deactivatedAt, text, last)
        }
        self.init(
            kind: .dkim, id: key.selector, use: key.domain, state: key.state.rawValue,
            since: since ?? key.createdAt, next: next,
            nextAt: end)
    }

    /// Nil for a retired key.
    init?(_ key: IdentityKey, now: Int64) {
        let rotate = "postern keys signing rotate"
        let (since, next, end): (Int64?, String, Int64?)
        switch key.state {
        case .retired: return nil
        case .next:
            let first = key.createdAt + IdentityKeyRepository.publicationBeforeUse
            let text =
                first > now
                ? "from \(timestamp(first)) on, \(rotate) lets it sign" : "\(rotate) lets it sign"
            (since, next, end) = (key.createdAt, text, first)
        case .active: (since, next, end) = (key.activatedAt, "\(rotate) replaces it", nil)
        case .retiring:
            let last = (key.deactivatedAt ?? now) + IdentityKeyRepository.publicationAfterUse
            (since, next, end) = (
                key.deactivatedAt, "it is retired automatically at \(timestamp(last))", last
            )
        }
        self.init(
            kind: .signing, id: key.keyID, use: key.algorithm.rawValue, state: key.state.rawValue,
            since: since ?? key.createdAt,
            next: next, nextAt: end)
    }
}
