"""Table 6 of J. Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006.

AUC on 14 data sets. On voting (the last but one) C4.5+cf and C4.5+m+cf are both printed as 0.975, with ranks 2 and 3;
the last digit that decides this is not printed and is made up here.
"""

AUC = {
    "C4.5": [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940, 0.619, 0.972, 0.957],
    "C4.5+m": [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962, 0.666, 0.981, 0.978],
    "C4.5+cf": [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.000, 0.965, 0.614, 0.975, 0.946],
    "C4.5+m+cf": [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.000, 0.962, 0.669, 0.9749, 0.970],
}
