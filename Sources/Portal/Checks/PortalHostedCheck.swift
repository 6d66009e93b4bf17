// The page that carries out a check which a decision required. It shows nothing of the user or the
// inbox before they are proved: a team can open the link itself.

import Accounts
import Database
import Decisions
import HTTP
import HTTPTypes
import Hummingbird
import Languages
import Mail
import SignIn
import Support

/// Asks for one of the checks that are enough.
struct CheckView: PageView {
    /// What the script needs for a proof of work.
    struct Work: Sendable {
        let seed: String
        let puzzles: String
        let iterations: String
        let target: String
    }

    /// A code by mail.
    struct Code: Sendable {
        /// Whether one was mailed already.
        let isSent: Bool
    }

    static let template = PageTemplate.check
    static let hasScript = true
    let csrf: String
    let team: String
    let app: String?
    /// The identifier of the app, if it has an icon.
    let icon: String?
    let initial: String
    /// What the user is about to do.
    let purpose: String
    /// The inbox that the user signed in with, who only has to confirm; nil before that.
    let account: String?
    /// Whether another user signed in.
    let isOther: Bool
    let problem: String?
    let code: Code?
    let codeProblem: String?
    let work: Work?
    /// Where the user signs in again; nil if that is not enough.
    let signInPath: String?
}

/// The check of an app's request, opened in its browser.
struct OpenCheck: Sendable {
    let sheet: OpenSheet
    let check: HostedCheck
    let person: CheckedPerson

    /// The challenge that a mailed code passes; nil if it passes none. Whoever cannot let a browser
    /// compute may enter a code instead.
    var ofCode: HostedChallenge? {
        guard person.inbox != nil else { return nil }
        return [.emailCode, .humanCheck].first { check.challenges.contains($0) }
    }

    /// Nil if a proof of work passes nothing.
    var work: ProofOfWork? {
        check.challenges.contains(.humanCheck)
            ? ProofOfWork(seed: sheet.handle, effort: check.effort) : nil
    }
}

extension PortalPage {
    /// A check in the browser that opened its link. Throws `PortalRefusal`: another browser could
    /// be that of a person who was sent the link, and would pass the check for whoever sent it.
    private func openCheck(
        _ request: PortalRequest, _ sheet: OpenSheet, _ check: HostedCheck
    ) async throws -> OpenCheck {
        guard let provider,
            let browser = AuthorizationCookie(issuer: provider.issuer).value(
                in: request.request.headers),
            try await pool.run({
                try store.authorizations.isBound(sheet.handle, to: browser, now: now())
            })
        else { throw PortalRefusal.otherBrowser }
        guard
            let person = try await pool.run({
                try store.hostedChecks.person(of: check.decisionID)
            })
        else { throw PortalRefusal.over }
        return OpenCheck(sheet: sheet, check: check, person: person)
    }

    /// How surely a user signs in again for a check: by what they have.
    func level(ofCheckFor session: PageSession) throws -> SignInLevel {
        let factors = try secondFactors(session)
        return factors.passkeys > 0
            ? .passkey : factors.authenticatorSince != nil ? .twoFactor : .any
    }

    private func step(
        _ open: OpenCheck, _ session: PageSession?
    ) async throws -> CheckStep {
        let level =
            try await pool.run { try session.map { try self.level(open.sheet, for: $0) } } ?? .any
        return CheckStep(
            open.check, of: open.sheet.pending, session: session, userID: open.person.userID,
            level: level)
    }

    // MARK: GET /sign-in

    func showCheck(
        _ request: PortalRequest, _ sheet: OpenSheet, _ check: HostedCheck
    ) async throws -> Response {
        let open = try await openCheck(request, sheet, check)
        let session = try await session(request)
        let step = try await step(open, session)
        if case .secondFactor = step { return request.redirect(request.step(Self.secondPath)) }
        return try await showCheck(request, open, session, step)
    }

    private func showCheck(
        _ request: PortalRequest, _ open: OpenCheck, _ session: PageSession?, _ step: CheckStep,
        problem: String? = nil, codeProblem: String? = nil, status: HTTPResponse.Status = .ok
    ) async throws -> Response {
        let language = request.language
        let browser = try request.browser ?? newToken()
        let (app, hasCode, account) = try await pool.run {
            (
                try appearance(open.sheet), try store.hostedChecks.hasCode(open.check),
                try session.map {
                    try store.inboxes.inbox(user: $0.userID, .number($0.inboxNumber)).address
                }
            )
        }
        let isConfirming = if case .confirm = step { true } else { false }
        let isOther = step == .other
        let work = isConfirming ? nil : open.work
        let view = CheckView(
            csrf: PortalCSRF.token(for: session == nil ? browser : request.sessionToken ?? browser),
            team: app.teamName, app: app.name,
            icon: app.hasIcon ? open.sheet.request.clientID : nil,
            initial: PortalText.initial(app.teamName),
            purpose: purpose(open.check, team: app.teamName, language),
            account: isConfirming ? account.map(PortalText.address) : nil, isOther: isOther,
            problem: problem,
            code: isConfirming || open.ofCode == nil
                ? nil : CheckView.Code(isSent: hasCode), codeProblem: codeProblem,
            work: work.map {
                CheckView.Work(
                    seed: $0.seed, puzzles: String(ProofOfWork.puzzles),
                    iterations: String(ProofOfWork.iterations), target: String($0.target))
            },
            signInPath: !isConfirming && open.check.challenges.contains(.reauthenticate)
                && open.person.userID != nil ? request.step("/me/sign-in") : nil)
        return try request.html(
            view, title: language.text("One more check for {team}", ["team": app.teamName]),
            status: status,
            cookies: [cookies.set(PortalCookies.browser, browser, age: 86_400)])
    }

    private func purpose(_ check: HostedCheck, team: String, _ language: Catalogue) -> String {
        switch check.event {
        case "sign_up": language.text("{team} asks for it before you sign up.", ["team": team])
        case "sign_in": language.text("{team} asks for it before you sign in.", ["team": team])
        case "upgrade":
            language.text("{team} asks for it before it links your account.", ["team": team])
        default:
            language.text("{team} asks for it before a sensitive step.", ["team": team])
        }
    }

    // MARK: POST /sign-in

    /// A button of the check. The form's token was checked.
    /// - Returns: nil for a button that every request of an app has.
    func decideCheck(
        _ request: PortalRequest, _ sheet: OpenSheet, _ check: HostedCheck, _ session: PageSession?
    ) async throws -> Response? {
        guard !sheet.pending.isFinished else { return try await finished(request, sheet) }
        switch request.form["decision"]?.text {
        case "send":
            return try await sendCheckCode(
                request, openCheck(request, sheet, check), session)
        case "code":
            return try await useCheckCode(request, openCheck(request, sheet, check), session)
        case "work":
            return try await useWork(request, openCheck(request, sheet, check), session)
        case "confirm":
            let open = try await openCheck(request, sheet, check)
            guard case .confirm(let session) = try await step(open, session) else {
                return request.redirect(request.step(Self.sheetPath))
            }
            return try await pass(request, open, .reauthenticate, CheckMethod(session))
        default: return nil
        }
    }

    private func sendCheckCode(
        _ request: PortalRequest, _ open: OpenCheck, _ session: PageSession?
    ) async throws -> Response {
        guard let challenge = open.ofCode, let user = open.person.userID,
            let inbox = open.person.inbox
        else { return request.redirect(request.step(Self.sheetPath)) }
        let shown = request.redirect(request.step(Self.sheetPath))
        // A second press of the button sends no second message.
        guard request.repetition != .done else { return shown }
        if let seconds = clients.take(request.clientNetworks, now: monotonic()) {
            throw PortalRefusal.tooOften(seconds)
        }
        let time = now()
        let (made, team, language) = try await pool.run {
            let made = try store.hostedChecks.newCode(
                for: open.check, user: user, perHour: mailer.settings.limits.perInbox, now: time)
            if case .success = made {
                _ = try store.hostedChecks.observe(
                    .initiated, challenge, by: .mailedCode, of: open.check, now: time)
            }
            return (made, try appearance(open.sheet).teamName, try mailer.language(of: user))
        }
        switch made {
        case .failure(let refusal):
            return try await showCheck(
                request, open, session, try await step(open, session),
                problem: sentence(refusal, request.language), status: .tooManyRequests)
        case .success(let code):
            let seconds = open.sheet.pending.createdAt + PendingLifetime.check - time
            guard
                sendLater(
                    "no code for a check was sent",
                    {
                        try mailer.sendCheck(
                            code: code, team: team, to: inbox, seconds: seconds, in: language,
                            now: time)
                    })
            else { throw PortalRefusal.busy }
            return shown
        }
    }

    private func useCheckCode(
        _ request: PortalRequest, _ open: OpenCheck, _ session: PageSession?
    ) async throws -> Response {
        guard let challenge = open.ofCode else {
            return request.redirect(request.step(Self.sheetPath))
        }
        let step = try await step(open, session)
        func again(
            _ problem: String, _ status: HTTPResponse.Status = .unprocessableContent
        ) async throws -> Response {
            try await showCheck(
                request, open, session, step, codeProblem: problem, status: status)
        }
        guard let digits = TypedCode.digits(request.typed("code")) else {
            return try await again(request.language.text("A code has six digits."))
        }
        let networks = request.clientNetworks
        if let seconds = await tries.begin(networks, now: monotonic) {
            throw PortalRefusal.tooOften(seconds)
        }
        // The second press of the button sends the same wrong code: that is no second try.
        var isWrong = request.repetition != .refused
        defer { tries.end(networks, isWrong: isWrong) }
        let time = now()
        let result: CheckCodeResult =
            switch request.repetition {
            case .refused: .wrong(left: 1)
            // The first press passed, and its code is gone.
            case .done: .right
            default:
                try await pool.run {
                    try store.hostedChecks.tryCode(digits, for: open.check, now: time)
                }
            }
        switch result {
        case .right:
            isWrong = false
            if request.repetition == .done { return try await passedBefore(request, open) }
            return try await pass(request, open, challenge, .mailedCode)
        case .wrong:
            return try await again(
                request.language.text(
                    "This code is wrong, or a newer one was sent. After {n} wrong codes this check fails.",
                    ["n": String(CheckCodeLimits.tries)]))
        case .refused(let refusal):
            if refusal == .failed {
                _ = try await pool.run {
                    try store.hostedChecks.observe(
                        .failed, challenge, by: .mailedCode, of: open.check, now: time)
                }
            }
            return try await again(sentence(refusal, request.language), .tooManyRequests)
        }
    }

    private func sentence(_ refusal: CheckCodeRefusal, _ language: Catalogue) -> String {
        switch refusal {
        case .noMoreMessages, .tooMuchMail:
            language.text(
                "No more codes are sent for now. Enter the last one, or choose another way.")
        case .failed:
            language.text("Too many codes were wrong. Choose another way, or go back.")
        case .tooManyToday:
            language.text(
                "Too many codes were wrong today, perhaps those of someone else. Choose another way, or try again tomorrow."
            )
        }
    }

    private func useWork(
        _ request: PortalRequest, _ open: OpenCheck, _ session: PageSession?
    ) async throws -> Response {
        guard let work = open.work else { return request.redirect(request.step(Self.sheetPath)) }
        if request.repetition == .done { return try await passedBefore(request, open) }
        let networks = request.clientNetworks
        if let seconds = await tries.begin(networks, now: monotonic) {
            throw PortalRefusal.tooOften(seconds)
        }
        var isWrong = true
        defer { tries.end(networks, isWrong: isWrong) }
        let solution = request.form["solution"]?.octets ?? []
        isWrong = try await pool.run { !work.isSolved(by: solution) }
        guard !isWrong else {
            return try await showCheck(
                request, open, session, try await step(open, session),
                problem: request.language.text(
                    "Your browser did not finish this check. Try again, or choose another way."),
                status: .unprocessableContent)
        }
        return try await pass(request, open, .humanCheck, .proofOfWork)
    }

    // MARK: The end

    /// Writes the pass and the app's response together, and sends the browser to it.
    private func pass(
        _ request: PortalRequest, _ open: OpenCheck, _ challenge: HostedChallenge,
        _ method: CheckMethod
    ) async throws -> Response {
        let (sheet, check, time) = (open.sheet, open.check, now())
        try await requireRegistered(sheet)
        let maker = try await maker(for: sheet, now: time)
        let ticket = try await pool.run { () -> String? in
            let token = try maker.token(
                CheckResult(
                    decisionID: check.decisionID, clientID: sheet.request.clientID,
                    challenge: challenge,
                    method: method, subject: open.person.account))
            do {
                return try store.database.write(.durable) { connection throws(StoreFailure) in
                    guard
                        try store.hostedChecks.observe(
                            connection, .passed, challenge, by: method, of: check, now: time)
                    else { throw .refused(.invalid, "the check has ended") }
                    return try store.authorizations.answer(
                        connection, sheet.handle,
                        with: AuthorizationResponse(sheet.request.target, checkResult: token),
                        of: check.decisionID, now: time)
                }
            } catch let failure as StoreFailure where failure.code == .refused(.exists) {
                // Two presses at once, and the other was faster.
                return try store.authorizations.ticketAgain(
                    sheet.handle, of: check.decisionID, now: time)
            }
        }
        return try await goOn(request, sheet, ticket: ticket)
    }

    /// The same form again, after the first passed.
    private func passedBefore(_ request: PortalRequest, _ open: OpenCheck) async throws -> Response
    {
        let ticket = try await pool.run {
            try store.authorizations.ticketAgain(
                open.sheet.handle, of: open.check.decisionID, now: now())
        }
        return try await goOn(request, open.sheet, ticket: ticket)
    }
}
