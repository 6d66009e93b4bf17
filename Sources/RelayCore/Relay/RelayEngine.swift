// Everything that the relay's decisions depend on, in one object. The milter and `postern explain`
// run the same engine.

import InternetMessage
import LeakSearch
import MailAuth

/// Immutable and shared: every part that handles a message uses the same one.
package final class RelayEngine: Sendable {
    package let settings: RelaySettings
    package let directory: any RelayDirectory
    package let authenticator: any SenderAuthenticator
    /// Signs outgoing mail; nil while no key is active.
    package let signer: (any MessageSigner)?
    /// Writes to people who answer a verification message. If nil, their answers are refused.
    let answeredNotice: (any AnsweredVerificationNotice)?
    /// Finds the provider of an inbox.
    let providers: any ProviderFinding
    package let tokens: TokenMint
    package let ids: MessageIDs
    package let mark: RelayMark
    let witness: OriginalWitness
    package let replyMemory: ReplyMemory
    /// Memory for mail to the operator. It is separate because anyone can write there, and users'
    /// replies must not wait for it.
    let operatorMemory = ReplyMemory(limit: 16_000_000)
    let keys: TokenKeys
    let refusedRecipients: RefusedRecipients
    let handedOver: HandedOverCopies
    let messagesUnderWay: MessagesUnderWay
    /// Returns the requested number of random octets.
    package let randomness: @Sendable (Int) -> [UInt8]
    /// Makes the rewriter of a reply's body.
    let bodyRewriter: @Sendable (ReplyNames, WorkBudget) -> any BodyRewriting

    /// - Parameter keys: the versioned keys of tokens, ids and marks. The result is nil if no key
    ///   can be derived from them.
    package init?(
        settings: RelaySettings, keys: TokenKeys, directory: any RelayDirectory,
        authenticator: any SenderAuthenticator,
        signer: (any MessageSigner)? = nil, answeredNotice: (any AnsweredVerificationNotice)? = nil,
        providers: any ProviderFinding = KnownProviders(), replyMemory: ReplyMemory,
        randomness: @escaping @Sendable (Int) -> [UInt8]
    ) {
        guard let ids = MessageIDs(keys: keys) else { return nil }
        self.settings = settings
        self.directory = directory
        self.authenticator = authenticator
        self.signer = signer
        self.answeredNotice = answeredNotice
        self.providers = providers
        self.keys = keys
        refusedRecipients = RefusedRecipients(keys: keys)
        handedOver = HandedOverCopies()
        messagesUnderWay = MessagesUnderWay()
        self.tokens = TokenMint(keys: keys)
        self.ids = ids
        self.mark = RelayMark(keys: keys)
        witness = OriginalWitness(keys: keys)
        self.replyMemory = replyMemory
        self.randomness = randomness
        bodyRewriter = { BodyRewriter(names: $0, budget: $1) }
    }

    /// The same engine with another authenticator.
    package func authenticating(by authenticator: any SenderAuthenticator) -> RelayEngine {
        RelayEngine(copying: self, authenticator: authenticator, bodyRewriter: bodyRewriter)
    }

    /// The same engine with another rewriter of bodies.
    func rewriting(
        by bodyRewriter: @escaping @Sendable (ReplyNames, WorkBudget) -> any BodyRewriting
    ) -> RelayEngine {
        RelayEngine(copying: self, authenticator: authenticator, bodyRewriter: bodyRewriter)
    }

    private init(
        copying other: RelayEngine, authenticator: any SenderAuthenticator,
        bodyRewriter: @escaping @Sendable (ReplyNames, WorkBudget) -> any BodyRewriting
    ) {
        settings = other.settings
        directory = other.directory
        self.authenticator = authenticator
        signer = other.signer
        answeredNotice = other.answeredNotice
        providers = other.providers
        keys = other.keys
        refusedRecipients = other.refusedRecipients
        handedOver = other.handedOver
        messagesUnderWay = other.messagesUnderWay
        tokens = other.tokens
        ids = other.ids
        mark = other.mark
        witness = other.witness
        replyMemory = other.replyMemory
        randomness = other.randomness
        self.bodyRewriter = bodyRewriter
    }

    /// The address that one token leads to; nil if no valid address is stored.
    func address(of token: AddressToken) throws(Refusal) -> AddrSpec? {
        let stored = StoredAddresses(directory: directory, tokens: tokens)
        let address = stored.address(of: token)
        if let failure = stored.failure { throw .storeTrouble(failure.detail) }
        return address
    }

    /// The provider that accepts an inbox's mail.
    func provider(of inbox: InboxAddress) -> ProviderFamily {
        providers.family(of: inbox.revealed.domain)
    }

    /// 20 random bits for a return path.
    package func nonce() -> UInt64 { randomness(3).reduce(0) { $0 << 8 | UInt64($1) } >> 4 }
}

/// Makes the DKIM signatures of outgoing mail.
package protocol MessageSigner: Sendable {
    /// Begins one message. Its body is fed to the session as it arrives.
    func begin() -> any SigningSession
}

/// The signing of one message.
package protocol SigningSession: AnyObject {
    func update(body: UnsafeRawBufferPointer)
    /// The fields to insert above the header section.
    /// - Parameters:
    ///   - domain: the relay domain that signs.
    ///   - now: seconds since 1970.
    /// - Throws: if a key does not sign.
    func finish(header: HeaderSection, domain: String, now: Int64) throws -> [HeaderField]
}

extension SigningSession {
    /// As `finish`. A message that cannot be signed is deferred, as it would fail unsigned at the
    /// user's provider.
    func signatures(
        header: HeaderSection, domain: String, now: Int64
    ) throws(Refusal) -> [HeaderField] {
        do { return try finish(header: header, domain: domain, now: now) } catch {
            throw .notConfigured("cannot sign: \(error)")
        }
    }
}
