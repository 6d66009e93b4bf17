// Checks whether `postern serve` could start, without starting, migrating or creating anything.

import Foundation
import Glibc
import Mail
import Milter
import PosternConfiguration
import PostfixSetup
import Relay
import Support

package enum StartChecks {
    /// Checks configuration, key file, store, policies, secrets, ports and certificate.
    /// - Parameters:
    ///   - flag: the file that `--config` named.
    ///   - set: `key=value` texts, which override file and environment.
    ///   - now: seconds since 1970.
    package static func run(
        flag: String?, environment: [String: String], set: [String], now: Int64
    ) -> [Check] {
        let facts = LocalProbe.gather(
            flag: flag, environment: environment, set: set, now: now, isBeforeStart: true)
        var checks = LocalChecks.ofStore(facts)
        guard
            let (configuration, resolved) = try? Installation.configuration(
                flag: flag, environment: environment, set: set)
        else { return checks }
        checks +=
            secrets(configuration, at: resolved.path) + files(configuration, at: resolved.path)
        checks.append(milter(configuration.milter.socket))
        if let listen = configuration.http.listen, listen.port > 0 {
            checks.append(http(listen, isEncrypted: configuration.http.certificate != nil))
        }
        if let (chain, key) = configuration.http.certificate {
            let host =
                configuration.publicURL.flatMap { URL(string: $0)?.host() }
                ?? configuration.hostname
            checks.append(
                PostfixProbe.certificate(chain, host: host).judge(
                    host: host, now: now, service: .http))
            checks.append(pair(chain, key))
        }
        return checks
    }

    /// Checks the settings that a reload applies, with the same parameters.
    package static func ofReload(
        flag: String?, environment: [String: String], set: [String], now: Int64
    ) -> [Check] {
        LocalChecks.ofReload(
            LocalProbe.gather(
                flag: flag, environment: environment, set: set, now: now, isBeforeStart: true))
    }

    /// Files that contain one secret each.
    private static func secrets(_ configuration: Configuration, at place: String) -> [Check] {
        var checks: [Check] = []
        func look(_ name: String, _ read: () throws(ConfigurationError) -> Void) {
            do throws(ConfigurationError) {
                try read()
                checks.append(
                    .ok(
                        CheckKind.secretOrFile.of(name),
                        "the secret of \(name) can be read, by its owner only"))
            } catch {
                checks.append(
                    .broken(
                        CheckKind.secretOrFile.of(name), error.message,
                        remedy: "put the secret there, with mode 0600"))
            }
        }
        if let (_, path) = configuration.mail.credentials {
            look("mail.submission") { () throws(ConfigurationError) in
                _ = try SecretFile.text(path, for: "mail.submission_password_file", at: place)
            }
        }
        if let upstream = configuration.provider.upstream {
            look("sign_in.upstream") { () throws(ConfigurationError) in
                _ = try upstream.settings(at: place)
            }
        }
        return checks
    }

    /// Files that the service reads at its start. Files that the configuration does not name are
    /// left out.
    private static func files(_ configuration: Configuration, at place: String) -> [Check] {
        var checks: [Check] = []
        func look(_ name: String, _ read: () throws -> Void) {
            do {
                try read()
                checks.append(.ok(CheckKind.secretOrFile.of(name), "\(name) can be used"))
            } catch {
                let why = (error as? ConfigurationError)?.message ?? "\(name): \(error)"
                checks.append(
                    .broken(
                        CheckKind.secretOrFile.of(name), why,
                        remedy: "fix what is named, or take the key out of postern.yaml"))
            }
        }
        if configuration.provider.languagesPath != nil || configuration.mail.templates != nil {
            let name = configuration.mail.templates == nil ? "sign_in.languages" : "mail.templates"
            look(name) { _ = try MailerFactory.templates(configuration, at: place) }
        }
        if configuration.pageLogoPath != nil {
            look("page.logo") { _ = try ServiceFiles.logo(configuration, at: place) }
        }
        if configuration.provider.passkeyRootsPath != nil {
            look("sign_in.passkey_roots") {
                _ = try ServiceFiles.passkeyRoots(configuration, at: place)
            }
        }
        for (name, path) in [
            ("mail.trusted_certificates", configuration.mail.rootsPath),
            ("events.trusted_certificates", configuration.eventRootsPath),
        ] {
            guard let path else { continue }
            look(name) {
                do { _ = try SubmissionSecurity.context(rootsPath: path) } catch {
                    throw ConfigurationError(
                        .invalidValue, at: place, "\(name): no certificates (PEM) found in \(path)")
                }
            }
        }
        return checks
    }

    // MARK: Ports

    private static func milter(_ socket: String) -> Check {
        let name = CheckKind.milter
        guard let parsed = MilterSocket(socket) else {
            return .broken(
                name, "milter.socket: \(socket) cannot be read",
                remedy: "write unix:/path or inet:port@host")
        }
        if MilterProbe.ask(socket) == .fine {
            return .ok(name, "a milter answers at \(socket) already: postern serve is running")
        }
        switch parsed {
        case .unix(let path, _, _):
            let folder = (path as NSString).deletingLastPathComponent
            guard access(folder, W_OK | X_OK) == 0 else {
                return .broken(
                    name, "\(folder): \(String(cString: strerror(errno)))",
                    remedy:
                        "make the folder of milter.socket, for the user that postern serve runs as")
            }
            var status = stat()
            guard lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFSOCK else {
                return .broken(
                    name, "\(path) exists and is not a socket",
                    remedy: "name another path, or move it away")
            }
            return .ok(name, "\(socket) can be made")
        case .tcp(let host, let port):
            return free(name, host: host, port: port, key: "milter.socket")
        }
    }

    private static func http(_ listen: ListenAddress, isEncrypted: Bool) -> Check {
        let check = free(
            .http, host: listen.host, port: UInt16(clamping: listen.port), key: "http.listen")
        guard check.verdict == .broken,
            MilterProbe.askHTTP(listen, isEncrypted: isEncrypted) == .fine
        else { return check }
        return .ok(
            .http, "\(listen.host):\(listen.port) is in use, and answers as postern serve does")
    }

    /// Whether the service could listen at this address.
    private static func free(_ name: CheckKind, host: String, port: UInt16, key: String) -> Check {
        let place = "\(host):\(port)"
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0, let first = list else {
            return .broken(
                name, "\(key): \(host) is not an address of this machine",
                remedy: "name one, or 127.0.0.1")
        }
        defer { freeaddrinfo(first) }
        let descriptor = socket(
            first.pointee.ai_family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var isReused: Int32 = 1
        // The service sets this too: a recently closed port counts as free.
        setsockopt(
            descriptor, SOL_SOCKET, SO_REUSEADDR, &isReused, socklen_t(MemoryLayout<Int32>.size))
        guard bind(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0 else {
            let code = errno
            return .broken(
                name, "\(key): nothing can listen at \(place) (\(String(cString: strerror(code))))",
                remedy: code == EADDRNOTAVAIL
                    ? "name an address of this machine, or 127.0.0.1"
                    : code == EACCES
                        ? "name a port above 1023, or let the service use this one (CAP_NET_BIND_SERVICE)"
                        : "find out what listens there (\(.listListeners)), or name another port")
        }
        return .ok(name, "\(place) is free")
    }

    // MARK: Certificate

    /// Whether certificate and key belong together, according to openssl(1).
    private static func pair(_ chain: String, _ key: String) -> Check {
        let name = CheckKind.httpKey
        guard let openssl = ToolRun.find("openssl", in: ["/usr/bin", "/usr/local/bin"]) else {
            return .warning(name, "\(key) was not checked", remedy: "install openssl")
        }
        func output(_ arguments: [String]) -> String? {
            guard let run = try? ToolRun(openssl, arguments), run.status == 0 else { return nil }
            return run.output
        }
        guard let own = output(["pkey", "-in", key, "-pubout"]) else {
            return .broken(
                name, "\(key): no private key can be read there",
                remedy: "name the key of the certificate, in PEM")
        }
        guard own == output(["x509", "-in", chain, "-noout", "-pubkey"]) else {
            return .broken(
                name, "\(key) is not the key of \(chain)",
                remedy: "name the key that the certificate was made for")
        }
        return .ok(name, "the key belongs to the certificate")
    }
}
