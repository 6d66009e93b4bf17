// Sign-in at a running `postern serve`, with clients of other projects.

import Foundation
import PostfixHarness
import TestSupport
import Testing

/// Python of `make test-tools` with Authlib and PyJWT; nil if it lacks them.
private let python: String? = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
    let own = root.appendingPathComponent(".build/test-tools/bin/python3").path
    return [own, "/usr/bin/python3"].first { path in
        (try? ManagedProcess.run(path, ["-c", "import authlib, jwt, requests, cryptography"]))?
            .status == 0
    }
}()

@Suite(.blocking) struct SignInClientTests {
    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent(
            "Tools/sign_in.py"
        ).path

    @Test(
        .enabled(if: python != nil, "skipped: no python3 with Authlib and PyJWT (make test-tools)"))
    func signIn_independentClient_refreshesAndRevokes() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        try runner.succeed(
            "app", "add", "juice", "com.example.juice", "--redirect-uri",
            "https://juice.example/signed-in")
        try runner.succeed(
            "user", "add", "jane", "--inbox", "jane@home.example", "--verified", "--name",
            "Jane Doe")
        // The team's key pair, created as the help describes.
        let key = runner.folder.appendingPathComponent("client.pem").path
        #expect(
            try ManagedProcess.run(
                "/usr/bin/openssl",
                ["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key]
            )
            .status == 0)
        #expect(
            try ManagedProcess.run(
                "/usr/bin/openssl", ["ec", "-in", key, "-pubout", "-out", key + ".pub"]
            ).status == 0)
        try runner.fail(
            "app", "key", "add", "juice", "client.pem", status: 65,
            saying: "private key, which must stay with the team")
        let added = try runner.succeed("app", "key", "add", "juice", "client.pem.pub")
        let kid = try #require(added.split(separator: " ").last.map(String.init))
        #expect(try runner.succeed("app", "key", "list", "juice").hasPrefix(kid + "\t"))
        let operatorKey = try runner.succeed(
            "api-key", "issue", "--operator", "--scope", "authorizations:write")

        let issuer = "http://127.0.0.1:\(try FreePort.next())"
        let server = try ManagedProcess(
            CommandRunner.executable.path,
            [
                "serve", "--config", runner.configuration, "--set",
                "milter.socket=unix:\(runner.folder.path)/milter",
                "--set", "http.listen=\(issuer.dropFirst("http://".count))", "--set",
                "http.public_url=\(issuer)",
                "--set", "provider.authorization_endpoint=https://sign-in.example/",
            ])
        defer {
            server.signal(SIGTERM)
            _ = try? server.waitForExit()
        }
        try server.waitForLine(containing: "serving")
        try server.waitForLine(containing: "listening for HTTP")

        let setup: [String: String] = [
            "issuer": issuer, "operator_key": operatorKey, "team": "juice",
            "team_key": try String(contentsOfFile: key, encoding: .utf8),
            "kid": kid, "client_id": "com.example.juice",
            "redirect_uri": "https://juice.example/signed-in", "user": "jane",
        ]
        let client = try ManagedProcess(try #require(python), [Self.script])
        client.writeInput(
            String(decoding: try JSONSerialization.data(withJSONObject: setup), as: UTF8.self))
        client.closeInput()
        #expect(try client.waitForExit() == 0, "\(client.output)")
        #expect(
            client.output.contains("and the address, and the name comes again"), "\(client.output)")
        for secret in [operatorKey, "jane@home.example", "pr_", "pc_"] {
            #expect(!server.output.contains(secret))
        }
    }

    @Test(
        .enabled(if: python != nil, "skipped: no python3 with Authlib and PyJWT (make test-tools)"),
        arguments: ["ES256", "RS256"])
    func signIn_openIDAppOfAuthlib_signsInAndOut(_ algorithm: String) throws {
        let (runner, client) = (try CommandRunner.initialised(), "com.example.juice")
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        try runner.succeed(
            "app", "add", "juice", client, "--redirect-uri", "https://juice.example/signed-in")
        try runner.succeed(
            "app", "redirect", "add", "juice", client, "https://juice.example/bye",
            "--after-sign-out")
        try runner.succeed("app", "client", "juice", client, "--id-token-algorithm", algorithm)
        try runner.succeed(
            "user", "add", "jane", "--inbox", "jane@home.example", "--verified", "--name",
            "Jane Doe")
        let key = runner.folder.appendingPathComponent("client.pem").path
        // Authlib signs assertions only with RSA.
        let generate = [
            "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key,
        ]
        #expect(try ManagedProcess.run("/usr/bin/openssl", generate).status == 0)
        #expect(
            try ManagedProcess.run(
                "/usr/bin/openssl", ["pkey", "-in", key, "-pubout", "-out", key + ".pub"]
            ).status == 0)
        let added = try runner.succeed("app", "key", "add", "juice", "client.pem.pub")
        let operatorKey = try runner.succeed(
            "api-key", "issue", "--operator", "--scope", "authorizations:write")
        let secret = try runner.succeed("app", "secret", "issue", "juice", client)
        let name = try #require(secret.split(separator: "_").dropFirst().first.map(String.init))
        #expect(try runner.succeed("app", "secret", "list", "juice", client).hasPrefix(name + "\t"))

        let (issuer, page) = ("http://127.0.0.1:\(try FreePort.next())", "https://sign-in.example/")
        let server = try ManagedProcess(
            CommandRunner.executable.path,
            [
                "serve", "--config", runner.configuration, "--set",
                "milter.socket=unix:\(runner.folder.path)/milter",
                "--set", "http.listen=\(issuer.dropFirst("http://".count))", "--set",
                "http.public_url=\(issuer)",
                "--set", "sign_in.page=\(page)",
            ])
        defer {
            server.signal(SIGTERM)
            _ = try? server.waitForExit()
        }
        try server.waitForLine(containing: "serving")
        try server.waitForLine(containing: "listening for HTTP")
        let setup: [String: String] = [
            "issuer": issuer, "page": page, "operator_key": operatorKey, "client_id": client,
            "client_secret": secret,
            "team_key": try String(contentsOfFile: key, encoding: .utf8), "algorithm": algorithm,
            "kid": try #require(added.split(separator: " ").last.map(String.init)),
            "redirect_uri": "https://juice.example/signed-in",
            "logout_uri": "https://juice.example/bye", "user": "jane",
        ]
        let script = URL(fileURLWithPath: Self.script).deletingLastPathComponent()
            .appendingPathComponent("openid_app.py").path
        let party = try ManagedProcess(try #require(python), [script])
        party.writeInput(
            String(decoding: try JSONSerialization.data(withJSONObject: setup), as: UTF8.self))
        party.closeInput()
        #expect(try party.waitForExit() == 0, "\(party.output)")
        #expect(party.output.contains("signed out and back at the app"), "\(party.output)")
        for text in [operatorKey, secret, "jane@home.example", "pr_", "pc_"] {
            #expect(!server.output.contains(text))
        }
    }

    private static let hasLibraries =
        python != nil
        && (try? ManagedProcess.run(
            python ?? "", ["-c", "import oic, requests_oauthlib, social_core"]))?.status == 0

    /// `Tools/libraries.py`: each library with its own defaults.
    @Test(
        .enabled(
            if: hasLibraries,
            "skipped: no python3 with oic, requests-oauthlib and social-auth-core (make test-tools)"
        ),
        arguments: ["requests_oauthlib", "authlib", "pyoidc", "python_social_auth", "appauth"])
    func signIn_libraryOfTheWorld_signsInAndRefreshes(_ library: String) throws {
        let (runner, client, redirect) = (
            try CommandRunner.initialised(), "com.example.juice", "https://juice.example/signed-in"
        )
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        for name in [client, "com.example.desktop"] {
            // An app on a desktop listens at any port.
            try runner.succeed(
                "app", "add", "juice", name, "--redirect-uri", redirect, "--redirect-uri",
                "http://127.0.0.1/oauth2redirect")
        }
        try runner.succeed("app", "client", "juice", "com.example.desktop", "--public")
        try runner.succeed(
            "user", "add", "jane", "--inbox", "jane@home.example", "--verified", "--name",
            "Jane Doe")
        let operatorKey = try runner.succeed(
            "api-key", "issue", "--operator", "--scope", "authorizations:write")
        let secret = try runner.succeed("app", "secret", "issue", "juice", client)

        let (issuer, page) = ("http://127.0.0.1:\(try FreePort.next())", "https://sign-in.example/")
        let server = try ManagedProcess(
            CommandRunner.executable.path,
            [
                "serve", "--config", runner.configuration, "--set",
                "milter.socket=unix:\(runner.folder.path)/milter",
                "--set", "http.listen=\(issuer.dropFirst("http://".count))", "--set",
                "http.public_url=\(issuer)",
                "--set", "sign_in.page=\(page)",
            ])
        defer {
            server.signal(SIGTERM)
            _ = try? server.waitForExit()
        }
        try server.waitForLine(containing: "serving")
        try server.waitForLine(containing: "listening for HTTP")
        let setup: [String: String] = [
            "issuer": issuer, "page": page, "operator_key": operatorKey, "client_id": client,
            "client_secret": secret,
            "public_id": "com.example.desktop", "redirect_uri": redirect, "user": "jane",
        ]
        let script = URL(fileURLWithPath: Self.script).deletingLastPathComponent()
            .appendingPathComponent("libraries.py").path
        let party = try ManagedProcess(try #require(python), ["-B", script, library])
        party.writeInput(
            String(decoding: try JSONSerialization.data(withJSONObject: setup), as: UTF8.self))
        party.closeInput()
        #expect(try party.waitForExit() == 0, "\(party.output)")
        #expect(party.output.contains("all steps came out right"), "\(party.output)")
        for text in [operatorKey, secret, "home.example", "pr_", "pc_"] {
            #expect(!server.output.contains(text))
        }
    }

    private static let hasApache =
        python != nil
        && FileManager.default.fileExists(atPath: "/usr/lib/apache2/modules/mod_auth_openidc.so")

    @Test(
        .enabled(
            if: hasApache,
            "skipped: no python3 with requests, or no libapache2-mod-auth-openidc (make test-tools)"
        ),
        arguments: ["ES256", "RS256"])
    func signIn_moduleOfApache_signsInAndOut(_ algorithm: String) throws {
        let (runner, client) = (try CommandRunner.initialised(), "com.example.juice")
        let ports = try (0..<5).map { _ in try FreePort.next() }
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        try runner.succeed("app", "add", "juice", client)
        for port in ports {
            try runner.succeed(
                "app", "redirect", "add", "juice", client, "http://127.0.0.1:\(port)/callback")
            try runner.succeed(
                "app", "redirect", "add", "juice", client, "http://127.0.0.1:\(port)/bye",
                "--after-sign-out")
        }
        try runner.succeed("app", "client", "juice", client, "--id-token-algorithm", algorithm)
        for name in ["Jane", "John"] {
            let user = name.lowercased()
            try runner.succeed(
                "user", "add", user, "--inbox", "\(user)@home.example", "--verified", "--name",
                "\(name) Doe")
        }
        let operatorKey = try runner.succeed(
            "api-key", "issue", "--operator", "--scope", "authorizations:write")
        let secret = try runner.succeed("app", "secret", "issue", "juice", client)
        let folder = runner.folder.appendingPathComponent("apache")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)

        let (issuer, page) = ("http://127.0.0.1:\(try FreePort.next())", "https://sign-in.example/")
        let server = try ManagedProcess(
            CommandRunner.executable.path,
            [
                "serve", "--config", runner.configuration, "--set",
                "milter.socket=unix:\(runner.folder.path)/milter",
                "--set", "http.listen=\(issuer.dropFirst("http://".count))", "--set",
                "http.public_url=\(issuer)",
                "--set", "sign_in.page=\(page)",
            ])
        defer {
            server.signal(SIGTERM)
            _ = try? server.waitForExit()
        }
        try server.waitForLine(containing: "serving")
        try server.waitForLine(containing: "listening for HTTP")
        let setup: [String: Any] = [
            "issuer": issuer, "page": page, "operator_key": operatorKey, "client_id": client,
            "client_secret": secret,
            "folder": folder.path, "ports": ports.map { Int($0) },
        ]
        let script = URL(fileURLWithPath: Self.script).deletingLastPathComponent()
            .appendingPathComponent("apache_openid.py").path
        let party = try ManagedProcess(try #require(python), [script])
        party.writeInput(
            String(decoding: try JSONSerialization.data(withJSONObject: setup), as: UTF8.self))
        party.closeInput()
        #expect(try party.waitForExit() == 0, "\(party.output)")
        #expect(party.output.contains("Apache signed in and out"), "\(party.output)")
        for text in [operatorKey, secret, "home.example", "pr_", "pc_"] {
            #expect(!server.output.contains(text))
        }
    }
}
