// Installations: `postern init` runs once in a process for each list of relay domains, and every
// user of this gets a copy of its result. It makes an RSA key, which takes as long as ten other
// commands.

import Foundation

package enum InstallationCopy {
    /// Folders by relay domains.
    private static let made = Watched<[[String]: Result<URL, any Error>]>([:])

    /// Puts an installation on SQLite into a folder that does not yet exist.
    package static func make(_ folder: String, relayDomains: [String]) throws {
        try FileManager.default.copyItem(atPath: original(relayDomains).path, toPath: folder)
    }

    private static func original(_ relayDomains: [String]) throws -> URL {
        try made.with { made in
            if let known = made[relayDomains] { return known }
            let result = Result { try initialise(relayDomains) }
            if made.isEmpty { atexit { InstallationCopy.remove() } }
            made[relayDomains] = result
            return result
        }.get()
    }

    private static func initialise(_ relayDomains: [String]) throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-installation-\(UUID().uuidString)")
        let arguments =
            ["init", "--directory", folder.path] + relayDomains.flatMap { ["--relay-domain", $0] }
        let run = try ManagedProcess.run(ManagedProcess.builtProduct("postern"), arguments)
        guard run.status == 0 else { throw HarnessError("postern init: \(run.output)") }
        return folder
    }

    private static func remove() {
        for case .success(let folder) in made.with({ Array($0.values) }) {
            try? FileManager.default.removeItem(at: folder)
        }
    }
}
