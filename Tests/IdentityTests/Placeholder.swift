import Testing
import Identity

@Suite struct IdentityPlaceholder {
    @Test func builds() {}
}
