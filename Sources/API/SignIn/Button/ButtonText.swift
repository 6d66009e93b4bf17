// The texts of the buttons, in each language.

/// The action of a button.
enum ButtonKind: String, Sendable, CaseIterable {
    case signIn = "sign-in"
    case goOn = "continue"
    case signUp = "sign-up"
}

/// A language of the buttons: its texts, with `%` in place of the service's name.
struct ButtonLanguage: Sendable {
    /// Its tag (RFC 5646), without a region.
    let tag: String
    let isRightToLeft: Bool
    private let texts: [ButtonKind: String]

    private init(_ tag: String, signIn: String, goOn: String, signUp: String, isRightToLeft: Bool = false) {
        self.tag = tag
        self.isRightToLeft = isRightToLeft
        texts = [.signIn: signIn, .goOn: goOn, .signUp: signUp]
    }

    func text(_ kind: ButtonKind, service: String) -> String { (texts[kind] ?? "%").replacing("%", with: service) }

    static let english = ButtonLanguage("en", signIn: "Sign in with %", goOn: "Continue with %", signUp: "Sign up with %")

    static let all = [
        english,
        ButtonLanguage("de", signIn: "Mit % anmelden", goOn: "Mit % fortfahren", signUp: "Mit % registrieren"),
        ButtonLanguage("fr", signIn: "Se connecter avec %", goOn: "Continuer avec %", signUp: "S’inscrire avec %"),
        ButtonLanguage("es", signIn: "Iniciar sesión con %", goOn: "Continuar con %", signUp: "Registrarse con %"),
        ButtonLanguage("ja", signIn: "%でサインイン", goOn: "%で続ける", signUp: "%で登録"),
        ButtonLanguage(
            "ar", signIn: "تسجيل الدخول عبر %", goOn: "المتابعة عبر %", signUp: "إنشاء حساب عبر %", isRightToLeft: true),
    ]

    /// The language for a tag, `de` also for `de-AT`; English if there is none.
    static func best(_ tag: String) -> ButtonLanguage {
        let primary = tag.prefix { $0 != "-" }.lowercased()
        return all.first { $0.tag == primary } ?? english
    }
}
