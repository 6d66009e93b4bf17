// RiskPolicy
