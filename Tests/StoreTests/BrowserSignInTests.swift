// Codes and passkeys in the store, and concurrent responses to apps, on both engines.

import Accounts
import Database
import PasskeyTesting
import PersonalData
import SignIn
import Synchronization
import TestSupport
import Testing
import WebAuthn

@Suite(.blocking) struct BrowserSignInTests {
    private static let (now, change) = (TestStore.now, TestStore.change)

    private func anna(_ engine: Engine) throws -> TestStore {
        let test = try TestStore(engine)
        try test.user("anna")
        _ = try test.store.apps.add(
            team: "juice", clientID: "com.juice", group: nil,
            redirectURIs: ["https://juice.example/in"], Self.change)
        return test
    }

    // MARK: Codes

    private func code(_ test: TestStore, browser: String, at now: Int64 = now) throws -> String {
        let link = try test.store.page.signInLink(
            for: TestStore.inbox("anna@home.example"), browser: browser,
            limits: NoticeLimits(perInbox: 50, perUser: 50), now: now
        )
        return try #require(link?.code)
    }

    private func wrong(_ code: String) -> String { code == "123456" ? "654321" : "123456" }

    @Test(arguments: Engine.all) func code_browserThatAskedForIt_signsInOnce(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        let (page, code) = (test.store.page, try code(test, browser: "mine"))
        #expect(try page.signIn(code: code, browser: "other", replacing: nil, now: Self.now) == nil)
        #expect(
            try page.signIn(code: wrong(code), browser: "mine", replacing: nil, now: Self.now)
                == nil)
        let session = try #require(
            try page.signIn(code: code, browser: "mine", replacing: nil, now: Self.now))
        #expect(try page.session(session, now: Self.now)?.userID == "anna")
        // The first response may have been lost.
        #expect(
            try page.signIn(code: code, browser: "mine", replacing: session, now: Self.now + 59)
                == session)
        #expect(
            try page.signIn(code: code, browser: "mine", replacing: session, now: Self.now + 60)
                == nil)
    }

    /// Codes requested earlier must not be valid after the tries of the day are used up.
    @Test(arguments: Engine.all) func code_manyCodesAndGuesses_allowsTenTriesADay(
        _ engine: Engine
    ) async throws {
        let test = try anna(engine)
        let page = test.store.page
        let codes = try (0..<5).map { try code(test, browser: "b\($0)") }
        let guesses = (0..<50).map { number -> @Sendable () throws -> Void in
            let (guess, browser) = (wrong(codes[number % 4]), "b\(number % 4)")
            return {
                let session = try page.signIn(
                    code: guess, browser: browser, replacing: nil, now: Self.now)
                #expect(session == nil)
            }
        }
        try await together(guesses)
        let tries: [Int64] = try test.database.values("SELECT tries FROM page_codes ORDER BY id")
        #expect(tries.reduce(0, +) == Int64(SignInCodeLimits.triesPerDay))
        #expect(tries.allSatisfy { $0 <= Int64(SignInCodeLimits.tries) })
        #expect(
            try page.signIn(code: codes[4], browser: "b4", replacing: nil, now: Self.now) == nil)
        let later = Self.now + 86_400
        let fresh = try code(test, browser: "b4", at: later)
        #expect(try page.signIn(code: fresh, browser: "b4", replacing: nil, now: later) != nil)
    }

    /// For a person who is not a user yet, the tries are those of the inbox.
    @Test(arguments: Engine.all) func signUpCode_manyGuesses_allowsTenTriesADay(
        _ engine: Engine
    ) async throws {
        let test = try anna(engine)
        let (page, inbox, rules) = (
            test.store.page, try TestStore.inbox("new@home.example"), SignUpRules(.open)
        )
        func asked(_ browser: String, at now: Int64) throws -> (code: String, sealed: String) {
            let link = try page.signInLink(
                for: inbox, browser: browser, rules: rules,
                limits: NoticeLimits(perInbox: 50, perUser: 50), now: now)
            return (
                try #require(link?.code), try page.sealSignUp(inbox, browser: browser, now: now)
            )
        }
        let codes = try (0..<3).map { try asked("b\($0)", at: Self.now) }
        let guesses = (0..<30).map { number -> @Sendable () throws -> Void in
            let ((code, sealed), browser) = (codes[number % 2], "b\(number % 2)")
            let guess = wrong(code)
            return {
                let session = try page.signIn(
                    code: guess, browser: browser, signUp: sealed, replacing: nil, now: Self.now)
                #expect(session == nil)
            }
        }
        try await together(guesses)
        let (code, sealed) = codes[2]
        #expect(
            try page.signIn(
                code: code, browser: "b2", signUp: sealed, replacing: nil, now: Self.now) == nil)
        let later = Self.now + 86_400
        let fresh = try asked("b3", at: later)
        // The seal of another inbox, the seal of another browser, and none.
        let foreign = try page.sealSignUp(
            try TestStore.inbox("anna@home.example"), browser: "b3", now: later)
        for other in [foreign, sealed, nil] {
            #expect(
                try page.signIn(
                    code: fresh.code, browser: "b3", signUp: other, replacing: nil, now: later)
                    == nil)
        }
        let session = try #require(
            try page.signIn(
                code: fresh.code, browser: "b3", signUp: fresh.sealed, replacing: nil, now: later))
        let user = try #require(try page.session(session, now: later)?.userID)
        #expect(try test.store.inboxes.inboxes(user: user).map(\.isVerified) == [true])
        #expect(
            try page.signIn(
                code: fresh.code, browser: "b3", signUp: fresh.sealed, replacing: nil,
                now: later + 60) == nil)
    }

    /// An hour of guesses from many networks: a user with the link, or in a known browser, can
    /// still sign in.
    @Test func tenThousandWrongCodes_ofManyBrowsers_leaveUsersTheirLink() throws {
        let test = try anna(.sqlite)
        let page = test.store.page
        func guess(_ number: Int) throws -> String? {
            try page.signIn(
                code: String(format: "%06d", number), browser: "guesser \(number / 2)",
                replacing: nil,
                now: Self.now + Int64(number / 3))
        }
        for number in 0..<10_000 { #expect(try guess(number) == nil) }
        let now = Self.now + 3_400
        #expect(try page.wrongCodes(now: now) == 10_000)
        #expect(try page.isGuarded(.standard, now: now))
        func link(_ browser: String) throws -> PageLink {
            try #require(
                try page.signInLink(
                    for: TestStore.inbox("anna@home.example"), browser: browser,
                    limits: NoticeLimits(perInbox: 50), now: now))
        }
        let new = try link("new")
        #expect(
            try page.signIn(code: try #require(new.code), browser: "new", replacing: nil, now: now)
                == nil)
        #expect(
            try page.signIn(link: try #require(new.token), browser: "new", replacing: nil, now: now)
                != nil)
        let known = try page.knownBrowser(user: "anna")
        let code = try #require(try link("old").code)
        #expect(
            try page.signIn(code: code, browser: "old", known: known, replacing: nil, now: now)
                != nil)
        #expect(try !page.isGuarded(.standard, now: Self.now + 3_334 + 3_900))
        #expect(try test.database.value(SQL("SELECT COUNT(*) FROM wrong_codes", [])) ?? 0 <= 14)
    }

    @Test(arguments: Engine.all) func signUp_strangerLimitOrSecondSpelling_isRefused(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        let (page, rules) = (test.store.page, SignUpRules(.open))
        func link(_ inbox: String, limit: Int) throws -> PageLink? {
            try page.signInLink(
                for: TestStore.inbox(inbox), browser: inbox, rules: rules,
                limits: NoticeLimits(perInbox: 50, perUser: 50, toStrangers: limit), now: Self.now)
        }
        let codes = try ["e.ve@gmail.com", "eve@gmail.com"].map {
            ($0, try #require(try link($0, limit: 4)?.code))
        }
        #expect(throws: StoreFailure.self) { try link("third@home.example", limit: 2) }
        #expect(try link("anna@home.example", limit: 2) != nil)
        let sessions = try codes.map { inbox, code in
            let sealed = try page.sealSignUp(TestStore.inbox(inbox), browser: inbox, now: Self.now)
            return try page.signIn(
                code: code, browser: inbox, signUp: sealed, replacing: nil, now: Self.now)
        }
        #expect(sessions[0] != nil && sessions[1] == nil)
    }

    @Test(arguments: Engine.all) func consent_standing_saysWhetherEmailWasAskedFor(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        for (scopes, shares) in [
            (["openid"], false), (["email", "openid"], true), (["name"], true),
        ] {
            let authorization = ProviderAuthorization(
                grant: AuthorizationRequest(
                    clientID: "com.juice", userID: "anna", realUserStatus: 0),
                redirectURI: "https://juice.example/in", scopes: Set(scopes), nonce: nil,
                challenge: nil, orgID: nil,
                authenticatedAt: Self.now)
            _ = try test.store.provider.authorize(authorization, Self.change) {
                issued throws(StoreFailure) in issued.code
            }
            #expect(
                try test.store.provider.consent(user: "anna", clientID: "com.juice")?.sharesEmail
                    == shares)
        }
    }

    // MARK: Passkeys

    private func authenticator(_ test: TestStore, isSynced: Bool = true) throws -> TestAuthenticator
    {
        var made = try TestAuthenticator(.create)
        if !isSynced { made.flags.subtract([.backupEligible, .backedUp]) }
        made.signCount = 1
        let challenge = try test.store.passkeys.challenge(
            .create, browser: "session", now: Self.now)
        made.clientData = TestAuthenticator.clientData(.create, challenge: challenge)
        try test.store.passkeys.add(
            user: "anna", made.relyingParty, clientData: Array(made.clientData.utf8),
            attestationObject: try made.attestationObject(), challenge: challenge,
            browser: "session", name: "Phone", Self.change)
        made.signCount = 2
        return made
    }

    private func signIn(
        _ test: TestStore, _ authenticator: TestAuthenticator, challenge: [UInt8],
        at now: Int64 = now
    ) throws -> PasskeySignIn {
        var authenticator = authenticator
        authenticator.clientData = TestAuthenticator.clientData(.get, challenge: challenge)
        return try test.store.passkeys.signIn(
            authenticator.relyingParty, credentialID: authenticator.credentialID,
            clientData: Array(authenticator.clientData.utf8),
            authenticatorData: authenticator.authenticatorData(withCredential: false),
            signature: try authenticator.signature(),
            userHandle: test.store.passkeys.userHandle("anna"), challenge: challenge, browser: "b",
            replacing: nil, now: now)
    }

    private func isSession(_ outcome: PasskeySignIn) -> Bool {
        if case .session = outcome { true } else { false }
    }

    @Test(arguments: Engine.all) func passkey_replayedOldOrRemoved_isRefused(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        var made = try authenticator(test, isSynced: false)
        let passkeys = test.store.passkeys
        let challenge = try passkeys.challenge(.get, browser: "b", now: Self.now)
        #expect(isSession(try signIn(test, made, challenge: challenge)))
        let known = try #require(try passkeys.passkeys(user: "anna").first)
        #expect(known.name == "Phone" && known.lastUsedAt == Self.now && !known.isBackedUp)
        // The same challenge again, the same count again, a lower count, and an expired challenge.
        made.signCount = 3
        #expect(!isSession(try signIn(test, made, challenge: challenge)))
        for count in [2, 1, 0] as [UInt32] {
            made.signCount = count
            #expect(
                !isSession(
                    try signIn(
                        test, made,
                        challenge: try passkeys.challenge(.get, browser: "b", now: Self.now))))
        }
        made.signCount = 3
        let old = try passkeys.challenge(.get, browser: "b", now: Self.now)
        #expect(
            !isSession(
                try signIn(test, made, challenge: old, at: Self.now + PasskeyLimits.challenge)))
        #expect(
            !isSession(
                try signIn(
                    test, made, challenge: try passkeys.challenge(.get, browser: "x", now: Self.now)
                )))
        try passkeys.remove(user: "anna", number: known.number, Self.change)
        #expect(
            !isSession(
                try signIn(
                    test, made, challenge: try passkeys.challenge(.get, browser: "b", now: Self.now)
                )))
    }

    @Test(arguments: Engine.all) func passkey_thatIsSyncedAndCountsBackwards_signsIn(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        var made = try authenticator(test)
        let passkeys = test.store.passkeys
        for count in [7, 7, 2, 0] as [UInt32] {
            made.signCount = count
            #expect(
                isSession(
                    try signIn(
                        test, made,
                        challenge: try passkeys.challenge(.get, browser: "b", now: Self.now))))
        }
        #expect(try passkeys.passkeys(user: "anna").map(\.isBackedUp) == [true])
    }

    @Test(arguments: Engine.all) func passkey_sameAnswerManyTimes_signsInOnce(
        _ engine: Engine
    ) async throws {
        let test = try anna(engine)
        let made = try authenticator(test)
        let challenge = try test.store.passkeys.challenge(.get, browser: "b", now: Self.now)
        let won = Mutex(0)
        let step: @Sendable () throws -> Void = {
            if isSession(try signIn(test, made, challenge: challenge)) { won.withLock { $0 += 1 } }
        }
        try await together(Array(repeating: step, count: 8))
        #expect(won.withLock { $0 } == 1)
    }

    /// A session by mail of Anna, who has an authenticator app; its secret, and
    /// the time of its next code.
    private func withAuthenticator(
        _ test: TestStore
    ) throws -> (session: PageSession, secret: [UInt8], now: Int64) {
        let code = try code(test, browser: "mine")
        let token = try #require(
            try test.store.page.signIn(code: code, browser: "mine", replacing: nil, now: Self.now))
        let session = try #require(try test.store.page.session(token, now: Self.now))
        let secret = Array("12345678901234567890".utf8)
        let first = OneTimePassword.code(secret, step: OneTimePassword.step(at: Self.now))
        try #require(
            try test.store.authenticators.add(
                session: session, secret: secret, code: first, Self.change))
        return (session, secret, Self.now + OneTimePassword.period)
    }

    @Test(arguments: Engine.all) func authenticatorCode_sameManyTimes_isAcceptedOnce(
        _ engine: Engine
    ) async throws {
        let test = try anna(engine)
        let (session, secret, now) = try withAuthenticator(test)
        let code = OneTimePassword.code(secret, step: OneTimePassword.step(at: now))
        let accepted = Mutex(0)
        let step: @Sendable () throws -> Void = {
            let result = try test.store.authenticators.prove(session: session, code: code, now: now)
            if result == .accepted { accepted.withLock { $0 += 1 } }
        }
        try await together(Array(repeating: step, count: 8))
        #expect(accepted.withLock { $0 } == 1)
    }

    @Test(arguments: Engine.all) func authenticatorCodes_wrongTogether_keepTheLimit(
        _ engine: Engine
    ) async throws {
        let test = try anna(engine)
        let (session, secret, now) = try withAuthenticator(test)
        let step = OneTimePassword.step(at: now)
        let wrong = Mutex(0)
        let tries: [@Sendable () throws -> Void] = (0..<AuthenticatorLimits.wrongCodes + 6).map {
            number in
            {
                let code = OneTimePassword.code(secret, step: step + 10 + Int64(number))
                let result = try test.store.authenticators.prove(
                    session: session, code: code, now: now)
                if result == .wrong { wrong.withLock { $0 += 1 } }
            }
        }
        try await together(tries)
        #expect(wrong.withLock { $0 } == AuthenticatorLimits.wrongCodes)
        let right = OneTimePassword.code(secret, step: step)
        #expect(
            try test.store.authenticators.prove(session: session, code: right, now: now)
                == .tooMany(AuthenticatorLimits.period))
        #expect(
            try test.store.authenticators.factors(user: "anna", host: nil)
                == SecondFactors(
                    authenticatorSince: Self.now, authenticatorUsedAt: Self.now, passkeys: 0,
                    isRequired: true))
    }

    @Test(arguments: Engine.all) func recoveryCode_sameManyTimes_isTakenOnce(
        _ engine: Engine
    ) async throws {
        let test = try anna(engine)
        let (session, _, now) = try withAuthenticator(test)
        let codes = try test.store.recoveryCodes.renew(user: "anna", Self.change)
        let taken = Mutex(0)
        let step: @Sendable () throws -> Void = {
            let isTaken = try test.store.recoveryCodes.use(
                session: session, code: codes[0], now: now)
            if isTaken { taken.withLock { $0 += 1 } }
        }
        try await together(Array(repeating: step, count: 8))
        #expect(taken.withLock { $0 } == 1)
        #expect(try test.store.recoveryCodes.left(user: "anna") == RecoveryCodeRepository.count - 1)
    }

    @Test(arguments: Engine.all) func user_deleted_losesSessionsPasskeysAndCodes(
        _ engine: Engine
    ) throws {
        let test = try anna(engine)
        let made = try authenticator(test)
        let (code, challenge) = (
            try code(test, browser: "mine"),
            try test.store.passkeys.challenge(.get, browser: "b", now: Self.now)
        )
        _ = try withAuthenticator(test)
        _ = try test.store.recoveryCodes.renew(user: "anna", Self.change)
        try test.store.users.remove("anna", Self.change)
        #expect(
            try test.store.page.signIn(code: code, browser: "mine", replacing: nil, now: Self.now)
                == nil)
        #expect(!isSession(try signIn(test, made, challenge: challenge)))
        for table in [
            "passkeys", "authenticators", "recovery_codes", "page_sessions", "page_links",
            "page_codes",
        ] {
            #expect(
                try test.database.value(SQL("SELECT COUNT(*) FROM \(table)", [])) == 0, "\(table)")
        }
    }

    // MARK: Answers to apps

    private func asked(_ user: String) -> ProviderAuthorization {
        var asked = ProviderAuthorization(
            grant: AuthorizationRequest(clientID: "com.juice", userID: user),
            redirectURI: "https://juice.example/in",
            scopes: ["openid"], nonce: nil, challenge: nil, orgID: nil, authenticatedAt: Self.now)
        asked.method = AuthenticationMethod(references: ["pwd", "otp"], contextClass: "phr")
        return asked
    }

    private func identifier(_ test: TestStore) throws -> (String, AuthorizationResponse) {
        let parameters = AuthorizationParameters([
            ("client_id", "com.juice"), ("redirect_uri", "https://juice.example/in"),
            ("response_type", "code"),
            ("scope", "openid"),
        ])
        let client = try #require(try test.store.openIDClients.authorizationClient("com.juice"))
        guard
            case .accepted(let request) = AuthenticationRequestReader(issuer: "https://id.example")
                .read(
                    parameters, client: client)
        else { throw StoreFailure.refused(.invalid, "the request was not accepted") }
        let response = AuthorizationResponse(
            request.target, code: "pc_x", identityToken: nil, user: nil)
        let identifier = try test.store.authorizations.add(
            request, subjectHint: nil, browser: "b", network: "192.0.2.1", now: Self.now)
        return (identifier, response)
    }

    /// Only the response that is used gives a consent; the others must not leave one.
    @Test(arguments: Engine.all) func authorization_manyAnswersToOneRequest_consentsOnce(
        _ engine: Engine
    ) async throws {
        let test = try anna(engine)
        let (identifier, response) = try identifier(test)
        let users = (0..<6).map { "u\($0)" }
        for user in users { try test.user(user) }
        let refused = Mutex(0)
        let steps = users.map { user -> @Sendable () throws -> Void in
            {
                do {
                    _ = try test.store.provider.authorize(asked(user), Self.change) {
                        _, connection throws(StoreFailure) in
                        _ = try test.store.authorizations.answer(
                            connection, identifier, with: response, of: user, now: Self.now)
                    } finish: { issued throws(StoreFailure) in
                        issued.code
                    }
                } catch let failure as StoreFailure where failure.code == .refused(.exists) {
                    refused.withLock { $0 += 1 }
                }
            }
        }
        try await together(steps)
        #expect(refused.withLock { $0 } == users.count - 1)
        for table in ["grants", "accounts", "authorization_codes", "pending_requests"] {
            #expect(
                try test.database.value(SQL("SELECT COUNT(*) FROM \(table)", [])) == 1, "\(table)")
        }
    }

    @Test(arguments: Engine.all) func authorizationCode_exchangedManyTimes_endsItsTokens(
        _ engine: Engine
    ) async throws {
        let test = try anna(engine)
        let client = try #require(try test.store.clients.client("com.juice"))
        let code = try test.store.provider.authorize(asked("anna"), Self.change) { $0.code }
        let won = Mutex<[String]>([])
        let step: @Sendable () throws -> Void = {
            let outcome = try test.store.provider.redeem(
                code: code, client: client, redirectURI: "https://juice.example/in", challenge: nil,
                now: Self.now
            ) { $0.accessToken }
            if case .issued(let token) = outcome { won.withLock { $0.append(token) } }
        }
        try await together(Array(repeating: step, count: 6))
        let tokens = won.withLock { $0 }
        #expect(tokens.count == 1)
        #expect(try test.store.provider.userInfo(accessToken: tokens[0], now: Self.now) == nil)
    }

    /// The export includes the method of each sign-in.
    @Test(arguments: Engine.all) func userExport_signInMethod_isIncluded(_ engine: Engine) throws {
        let test = try anna(engine)
        let client = try #require(try test.store.clients.client("com.juice"))
        func method(_ section: String) throws -> [String] {
            try test.store.persons.records(user: "anna", now: Self.now).filter {
                $0.name == section
            }.flatMap(\.rows).flatMap {
                row in
                row.filter { ["amr", "acr"].contains($0.name) }.map { "\($0.name) \($0.value)" }
            }
        }
        let code = try test.store.provider.authorize(asked("anna"), Self.change) { $0.code }
        let expected = [
            "amr \(UserExportRecords.Value.words(["otp", "pwd"]))",
            "acr \(UserExportRecords.Value.text("phr"))",
        ]
        #expect(try method("sign_ins_under_way") == expected)
        _ = try test.store.provider.redeem(
            code: code, client: client, redirectURI: "https://juice.example/in", challenge: nil,
            now: Self.now
        ) { $0.accessToken }
        #expect(try method("sign_ins") == expected)
    }
}
