// Gathers the facts for PostfixChecks and CertificateFacts, with postconf(1) and openssl(1).

import Foundation
import Milter
import PosternConfiguration
import PostfixSetup
import Relay

/// Reads the Postfix instance of a folder.
package struct PostfixProbe {
    private let directory: String
    private let configuration: Configuration

    /// - Parameter directory: the folder of Postfix's configuration; empty for Postfix's default.
    package init(directory: String, configuration: Configuration) {
        self.directory = directory
        self.configuration = configuration
    }

    /// - Returns: the facts, the certificates, and Postfix's name in HELO, which is nil if
    ///   Postfix's configuration could not be read.
    package func gather() -> (PostfixFacts, [CertificateFacts], heloName: String?) {
        var facts = PostfixFacts()
        guard let socket = MilterSocket(configuration.milter.socket) else {
            facts.trouble = "milter.socket cannot be read"
            return (facts, [], nil)
        }
        do {
            let plan = try PostfixSetup.plan(
                relayDomains: configuration.relayDomains,
                formerDomains: configuration.formerRelayDomains,
                socket: socket.postfixName, fanOut: configuration.fanOut?.text,
                outgoing: configuration.outgoingServices, directory: directory)
            let postfix = try PostfixConfiguration.read(directory: plan.directory)
            facts.directory = plan.directory
            facts.isRunning = PostfixSetup.isRunning(directory: plan.directory)
            facts.relayhost = postfix.expanded["relayhost"] ?? ""
            facts.differences = (plan.mainChanges + plan.newServices + plan.masterChanges).map {
                PostfixFacts.Difference(
                    name: $0.name, present: $0.old, needed: $0.new, reason: $0.reason)
            }
            facts.hasHeaderCheck = plan.headerChecks == nil
            facts.bypasses = plan.bypasses
            facts.conflicts = plan.conflicts
            facts.silentMilters = Self.silentMilters(postfix, besides: socket.postfixName)
            facts.ownerTrouble = MilterPeers(configuration.milter.peers).trouble(
                mailOwner: postfix.expanded["mail_owner"] ?? "postfix")
            do {
                facts.parked = try PostfixQueue.parked(
                    at: configuration.relayDomains, directory: plan.directory)
            } catch {
                facts.queueTrouble = "\(error)"
            }
            return (facts, certificates(postfix), postfix.expanded["myhostname"])
        } catch {
            facts.trouble = "\(error)"
            return (facts, [], nil)
        }
    }

    /// Other milters that do not answer, each once.
    private static func silentMilters(
        _ postfix: PostfixConfiguration, besides ours: String
    ) -> [(parameter: String, milter: String, trouble: String)] {
        var seen: Set = [ours]
        return ["smtpd_milters", "non_smtpd_milters"].flatMap { parameter in
            postfix.milters(of: parameter).compactMap {
                name -> (parameter: String, milter: String, trouble: String)? in
                guard seen.insert(name).inserted else { return nil }
                // Postfix resolves a relative path from its queue directory, and every path inside
                // its chroot.
                let path = name.hasPrefix("unix:") ? String(name.dropFirst("unix:".count)) : nil
                let queue = postfix.expanded["queue_directory"] ?? ""
                let places =
                    path.map { ["unix:\(queue)/\($0)"] + ($0.hasPrefix("/") ? [name] : []) } ?? [
                        name
                    ]
                var troubles: [String] = []
                for place in places {
                    switch MilterProbe.ask(place) {
                    case .fine: return nil
                    case .silent: troubles.append("it takes connections and says nothing")
                    case .trouble(let what): troubles.append(what)
                    }
                }
                return troubles.last.map { (parameter, name, $0) }
            }
        }
    }

    /// The reason why incoming mail does not pass our milter; nil if it passes Postern.
    package func milterTrouble() -> String? {
        let (facts, _, _) = gather()
        if let trouble = facts.trouble { return "Postfix's settings cannot be read: \(trouble)" }
        if facts.isRunning == false { return "Postfix (\(facts.directory)) is not running" }
        return facts.differences.first { $0.name == "smtpd_milters" }.map {
            "\($0.name) is \($0.present.isEmpty ? "empty" : $0.present)"
        }
    }

    /// The addresses at which this Postfix accepts mail from other servers, except those on
    /// loopback.
    package func incomingDoors() throws -> [IncomingDoor] {
        guard let socket = MilterSocket(configuration.milter.socket) else { return [] }
        return try PostfixConfiguration.read(directory: directory).incomingDoors(
            of: LocalAddresses.all(), besides: configuration.fanOut?.text,
            socket: socket.postfixName)
    }

    /// The port to which Postfix sends mail that the probe captures at a relay domain, if it is on
    /// this machine.
    package func capturePort(of address: String) throws -> UInt16? {
        try DeadEndTransport.port(of: address, in: PostfixConfiguration.read(directory: directory))
    }

    /// The number of checks of the queue: a message deleted during delivery may leave a bounce
    /// behind a moment later.
    private static let queueLooks = 5
    /// Seconds between two checks.
    private static let queuePause = 1.0

    /// Deletes messages from the queue whose recipients are all the probe's, and their bounces;
    /// returns how many.
    package func clearQueue(of isOurs: (String) -> Bool) throws -> Int {
        var count = 0
        for look in 0..<Self.queueLooks {
            if look > 0 { Thread.sleep(forTimeInterval: Self.queuePause) }
            let found = try PostfixQueue.delete(where: isOurs, directory: directory)
            count += found
            if found == 0, look > 0 { break }
        }
        return count
    }

    /// Messages in the queue for addresses at these domains. Throws if Postfix's tools fail.
    package static func parked(at domains: [String], directory: String) throws -> Int {
        try PostfixQueue.parked(at: domains, directory: directory)
    }

    private func certificates(_ postfix: PostfixConfiguration) -> [CertificateFacts] {
        let paths = ["smtpd_tls_chain_files", "smtpd_tls_cert_file", "smtpd_tls_eccert_file"]
            .compactMap { postfix.expanded[$0] }.flatMap {
                $0.split { " ,\t".contains($0) }.map(String.init)
            }
            .filter { $0 != "none" }
        guard !paths.isEmpty else { return [CertificateFacts(path: "", state: .notConfigured)] }
        let host = postfix.expanded["myhostname"] ?? configuration.hostname
        // A file in smtpd_tls_chain_files may contain only a key.
        let facts = Set(paths).sorted().map { Self.certificate($0, host: host) }
        let certificates = facts.filter { if case .unreadable = $0.state { false } else { true } }
        return certificates.isEmpty ? facts : certificates
    }

    package static func certificate(_ path: String, host: String) -> CertificateFacts {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            return CertificateFacts(path: path, state: .unreadable("the file cannot be read"))
        }
        guard text.contains("-----BEGIN CERTIFICATE-----") else {
            return CertificateFacts(
                path: path, state: .unreadable("the file contains no certificate"))
        }
        guard let tool = ToolRun.find("openssl", in: ["/usr/bin", "/usr/local/bin"]) else {
            return CertificateFacts(
                path: path, state: .unknown("the openssl command was not found"))
        }
        guard
            let lines = try? ToolRun(
                tool,
                [
                    "x509", "-in", path, "-noout", "-enddate", "-dateopt", "iso_8601", "-checkhost",
                    host,
                ]
            ).output,
            let date = lines.split(separator: "\n").first(where: { $0.hasPrefix("notAfter=") })?
                .dropFirst("notAfter=".count),
            let end = try? Date(date.replacing(" ", with: "T"), strategy: .iso8601)
        else { return CertificateFacts(path: path, state: .unreadable("openssl cannot read it")) }
        return CertificateFacts(
            path: path,
            state: .valid(
                until: Int64(end.timeIntervalSince1970),
                matchesHost: !lines.contains("does NOT match")))
    }
}
