// postern verify token: checks an identity token by hand.

import ArgumentParser
import Foundation
import Logging
import PosternConfiguration
import SignIn
import Support

struct VerifyToken: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Verify an identity token.",
        discussion: """
            Reads a token from a file or standard input and prints one JSON object: {"valid": true, "claims": …}, or \
            {"valid": false, "error": "CHECK: …"}, which names the check that failed and repeats nothing of the token. \
            Checks, in this order: format, typ, alg, kid, signature, iss, aud, sub, exp, iat, nbf, nonce, claims.

            Without --jwks, the issuer of the token is looked up (postern issuer list), and its stored keys are used or \
            its keys are fetched. With --jwks, no installation is needed. A nonce must be both in the token and in the \
            request, or in neither. Nothing is consumed: the same nonce verifies again.

            Exit status 0 if valid, 65 if refused, 75 if the keys are unavailable now.

            With --batch, standard input has one JSON object per line: {id, token, jwks, iss, aud, nonce, now, claims}. \
            jwks is a JWK Set, or null for the keys of the configured issuer. now is in seconds since 1970 or ISO 8601. \
            claims is check (the default), or skip, which checks only format, alg, kid and signature. Optional members \
            are algorithms, nonce_form and leeway. The responses {id, valid, claims | error} come in the same order, and \
            the exit status is 0.
            """)

    @Argument(help: "The file with the token. By default standard input.") var file: String?
    @Option(help: ArgumentHelp("The expected issuer; required with --jwks.", valueName: "text"))
    var iss: String?
    @Option(help: ArgumentHelp("The expected audience: the app's client_id.", valueName: "text"))
    var aud: String?
    @Option(help: ArgumentHelp("The expected nonce, as the app sent it.", valueName: "text"))
    var nonce: String?
    @Option(
        help: ArgumentHelp(
            "raw or sha256_hex. By default the form of the issuer.", valueName: "form"))
    var nonceForm: TokenNonceForm?
    @Option(
        help: ArgumentHelp("Take the keys from this JWK Set.", valueName: "file"),
        transform: filePath) var jwks: String?
    @Option(
        help: ArgumentHelp(
            "RS256 or ES256; may be repeated. By default those of the issuer.", valueName: "name"))
    var algorithm: [TokenAlgorithm] = []
    @Option(
        name: .customLong("now"),
        help: ArgumentHelp("The time, in seconds since 1970 or ISO 8601.", valueName: "time"))
    var time: String?
    @Option(help: ArgumentHelp("check or skip the claims.", valueName: "word")) var claims:
        ClaimChecks = .check
    @Flag(help: "Read requests as JSON lines.") var batch = false
    @OptionGroup var options: InstallationOptions

    enum ClaimChecks: String, ExpressibleByArgument, CaseIterable { case check, skip }

    func validate() throws {
        if batch,
            file != nil || iss != nil || aud != nil || nonce != nil || jwks != nil || time != nil
        {
            throw ValidationError(
                "With --batch every request has its own token, keys and expectations.")
        }
        if !batch, claims == .check, aud == nil {
            throw ValidationError("Name the app with --aud.")
        }
        if !batch, claims == .check, jwks != nil, iss == nil {
            throw ValidationError("Name the issuer with --iss.")
        }
    }

    mutating func run() async throws {
        let installation = jwks == nil ? try options.installationIfAny() : nil
        defer { try? installation?.close() }
        let question = batch ? nil : try question()
        let this = self
        let answer: TokenVerificationResponse? = try await TokenFiles.withFetcher { fetcher in
            let questions = Self.questions(installation, fetcher)
            if let question { return await questions.answer(question) }
            try await this.answerLines(questions)
            return nil
        }
        guard let answer else { return }
        print(answer.json(withID: false).text)
        switch answer.outcome {
        case .valid: break
        case .rejected: throw ExitCode(EX_DATAERR)
        case .unavailable: throw ExitCode(EX_TEMPFAIL)
        }
    }

    private static func questions(
        _ installation: Installation?, _ fetcher: HTTPKeySetFetcher
    ) -> TokenQuestions {
        guard let installation else { return TokenQuestions(issuers: nil, keys: nil) }
        // Errors are in the responses; a log would only repeat them.
        let logger = Logger(label: "postern") { _ in SwiftLogNoOpLogHandler() }
        let issuers = installation.store.issuers
        return TokenQuestions(
            issuers: StoredIssuers(issuers, now: PosternClock.now, logger: logger),
            keys: KeySetCache(
                fetcher: fetcher, storage: StoredKeySets(issuers, logger: logger),
                now: PosternClock.now, logger: logger))
    }

    private func question() throws -> TokenVerificationRequest {
        // Reads one octet more than the limit, so that a longer token is refused for its length.
        var octets = try TokenFiles.read(file ?? "-", limit: 1 << 20)
        // A byte order mark or a line break that an editor added is not part of the token.
        if octets.starts(with: PlainText.byteOrderMark) {
            octets.removeFirst(PlainText.byteOrderMark.count)
        }
        if octets.last == 0x0A { octets.removeLast() }
        if octets.last == 0x0D { octets.removeLast() }
        guard !octets.isEmpty else {
            throw CommandError.noInput("give a token on standard input or in a file")
        }
        var question = TokenVerificationRequest(
            token: String(decoding: octets, as: UTF8.self),
            now: try time.map(TimeArgument.seconds) ?? PosternClock.now())
        question.issuer = iss
        question.audience = aud
        question.nonce = nonce
        question.nonceForm = nonceForm?.value
        question.algorithms = algorithm.isEmpty ? nil : Set(algorithm.map(\.value))
        question.checksClaims = claims == .check
        if let jwks {
            do {
                question.keys = try StrictJSON.parse(
                    Array(try InputFile.text(jwks, maximum: JWKSet.maximumLength).utf8),
                    limit: JWKSet.maximumLength)
            } catch let error as JSONError {
                throw CommandError.data("\(jwks): the key set is not valid JSON: \(error)")
            }
        }
        return question
    }

    private func answerLines(_ questions: TokenQuestions) async throws {
        var lines = BatchInput(maximum: TokenVerificationRequest.maximumLength)
        while let line = try lines.next() {
            let answer: JSONValue
            do throws(TokenVerificationRequest.Unreadable) {
                let question = try TokenVerificationRequest(line: line, now: PosternClock.now()) {
                    try? TimeArgument.seconds($0)
                }
                answer = await questions.answer(question).json()
            } catch {
                answer = .object([
                    "id": error.id, "valid": .bool(false),
                    "error": .string("question: \(error.reason)"),
                ])
            }
            try BatchOutput.write(line: answer.text)
        }
    }
}
